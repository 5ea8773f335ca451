"""Times training steps on the card that torch sees, and prints them as JSON.

On a real card, to record (into `ground_truth/h200/step_times.json`):

    python bench/step_times.py > step_times.json

On a virtual one, as `make bench` does:

    ghostgpu run --gpu h200 --steps 0 bench/step_times.py

Times are wall-clock medians of the steps after the first ones, with the card synchronised before
and after each step.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import time
from typing import Any

import torch
from job import JOBS, Job

WARM_UP_STEPS = 5
"""The first steps choose algorithms, load code and fill the allocator's cache."""


def step_times_ms(job: Job, steps: int) -> list[float]:
    model = job.model.to("cuda", job.dtype)
    optimizer = job.optimizer(model.parameters())
    times = []
    for _ in range(WARM_UP_STEPS + steps):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        job.step(model, optimizer)
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) * 1e3)
    return times[WARM_UP_STEPS:]


def summary(times: list[float]) -> dict[str, float]:
    return {
        "median_ms": round(statistics.median(times), 3),
        "least_ms": round(min(times), 3),
        "most_ms": round(max(times), 3),
    }


def main() -> None:
    jobs = [name for name in JOBS if not name.startswith("llama")]
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", nargs="+", choices=jobs, default=jobs)
    parser.add_argument("--steps", type=int, default=15, help="steps to time")
    parser.add_argument(
        "--seconds", type=float, default=600, help="begin no further job after that much time"
    )
    arguments = parser.parse_args()
    end = time.perf_counter() + arguments.seconds
    result: dict[str, Any] = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "warm_up_steps": WARM_UP_STEPS,
        "timed_steps": arguments.steps,
        "jobs": {},
    }
    for name in arguments.jobs:
        if time.perf_counter() > end:
            sys.stderr.write(f"no time left for {name}\n")
            continue
        result["jobs"][name] = summary(step_times_ms(JOBS[name](), arguments.steps))
        sys.stderr.write(f"{name}: {result['jobs'][name]}\n")
        # The next job must find the card as empty as a fresh process would.
        gc.collect()
        torch.cuda.empty_cache()
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
