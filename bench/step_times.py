"""Times training steps on the card that torch sees, and prints them as JSON.

On a real card, to record (into `ground_truth/h200/step_times.json`):

    python bench/step_times.py > step_times.json

On a virtual one, as `make bench` does:

    ghostgpu run --gpu h200 --steps 0 bench/step_times.py

The median of the steps after the first ones, from the wall clock, with the card synchronised before
and after each step.
"""

from __future__ import annotations

import json
import statistics
import time

import torch
from job import JOBS

MODELS = ("bert-base", "resnet50")
WARM_UP_STEPS = 5
"""The first steps choose algorithms, load code and fill the allocator's cache."""
TIMED_STEPS = 30


def step_times_ms(model_name: str) -> list[float]:
    job = JOBS[model_name]()
    model = job.model.to("cuda")
    optimizer = job.optimizer(model.parameters())
    times = []
    for _ in range(WARM_UP_STEPS + TIMED_STEPS):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        job.loss(model).backward()
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) * 1e3)
    return times[WARM_UP_STEPS:]


def main() -> None:
    models = {}
    for name in MODELS:
        times = step_times_ms(name)
        models[name] = {
            "job": JOBS[name].__doc__,
            "median_ms": round(statistics.median(times), 3),
            "least_ms": round(min(times), 3),
            "most_ms": round(max(times), 3),
        }
    result = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "warm_up_steps": WARM_UP_STEPS,
        "timed_steps": TIMED_STEPS,
        "models": models,
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
