"""Finds the largest batch that trains under a memory cap, for twelve models, by bisection.

    python ground_truth/harness/largest_batch.py --out largest_batch.json --jobs 10

With `--near EARLIER.json`, an earlier answer is tried first: when it fits and the next batch does
not, the search ends after two rehearsals.

Every batch size runs in a fresh process (forked before CUDA is used, so that nothing is imported
twice) and trains three steps. All results are kept, not only the largest: both sides must agree on
each.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import torch

import cases  # noqa: F401
from case import CASES, NO_ENGINE, Case
from context import Context
from training import train


@dataclasses.dataclass(frozen=True)
class Search:
    """A case, its memory limit, and a first guess."""

    case: str
    cap_gib: float
    first_guess: int


SEARCHES = (
    Search("resnet50", 11.0, 64),
    Search("resnet50-fp16-channels-last", 11.0, 128),
    Search("vgg16", 8.0, 32),
    Search("convnext-tiny-bf16", 8.0, 64),
    Search("vit-b-16-bf16", 11.0, 64),
    Search("unet", 8.0, 8),
    Search("lstm-2-layers-dropout", 6.0, 128),
    Search("bert", 8.0, 64),
    Search("gpt2-bf16", 11.0, 8),
    Search("t5-small", 6.0, 16),
    Search("llama-pure-bf16-checkpointing", 8.0, 16),
    Search("mlp-adamw-foreach", 3.0, 4096),
)


def probe(search: Search, batch: int) -> dict[str, Any]:
    """Trains three steps with this batch in a forked process."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        try:
            answer = _train(search, batch)
        except BaseException:  # noqa: BLE001
            answer = {"outcome": "failed", "failure": traceback.format_exc()}
        os.write(write_end, json.dumps(answer).encode())
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    if not text:
        return {"batch": batch, "outcome": "failed", "failure": "the process died"}
    return {"batch": batch, **json.loads(text)}


def _train(search: Search, batch: int) -> dict[str, Any]:
    case: Case = CASES[search.case]

    def start() -> None:
        torch.cuda.init()
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(search.cap_gib * 2**30 / total)

    outcome = "finished"
    try:
        train(Context(case, batch_size=batch, on_start=start))
    except torch.OutOfMemoryError:
        outcome = "oom"
    except RuntimeError as error:
        if NO_ENGINE not in str(error):
            raise
        outcome = "no-engine"
    statistics = torch.cuda.memory_stats()
    return {
        "outcome": outcome,
        "peak_allocated_bytes": torch.cuda.max_memory_allocated(),
        "peak_reserved_bytes": torch.cuda.max_memory_reserved(),
        "retries": statistics["num_alloc_retries"],
    }


def search_one(search: Search, give_up_after: float, near: int | None = None) -> dict[str, Any]:
    """Doubles until a batch does not fit, then halves the distance."""
    deadline = time.monotonic() + give_up_after
    probes: list[dict[str, Any]] = []

    def fits(batch: int) -> bool:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{search.case}: no answer after {give_up_after:.0f} s")
        answer = probe(search, batch)
        probes.append(answer)
        if answer["outcome"] == "failed":
            raise RuntimeError(answer["failure"])
        return bool(answer["outcome"] == "finished")

    result: dict[str, Any] = {**dataclasses.asdict(search), "largest_batch": None, "probes": probes}
    try:
        low, high = 0, search.first_guess
        if near and fits(near):
            low, high = near, near + 1
        while fits(high):
            low, high = high, high * 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        result["largest_batch"] = low
    except (RuntimeError, TimeoutError) as failure:
        result["failure"] = str(failure)
    return result


def run_in_parallel(options: argparse.Namespace) -> list[dict[str, Any]]:
    """One process per model, at most `--jobs` at a time."""
    waiting = [s for s in SEARCHES if not options.only or s.case in options.only]
    running: list[tuple[Search, subprocess.Popen[bytes], Path]] = []
    results = []
    with tempfile.TemporaryDirectory() as folder:
        while waiting or running:
            while waiting and len(running) < options.jobs:
                search = waiting.pop(0)
                path = Path(folder) / f"{search.case}.json"
                command = [sys.executable, __file__, "--one", search.case, "--out", str(path)]
                command += ["--limit", str(options.limit)]
                if options.near:
                    command += ["--near", str(options.near)]
                running.append((search, subprocess.Popen(command), path))
            for entry in list(running):
                search, process, path = entry
                if process.poll() is None:
                    continue
                running.remove(entry)
                failed = {**dataclasses.asdict(search), "largest_batch": None, "probes": []}
                result = json.loads(path.read_text()) if path.exists() else failed
                results.append(result)
                print(
                    f"{search.case:34} {search.cap_gib:5} GiB: {result['largest_batch']}",
                    flush=True,
                )
            time.sleep(0.05)
    return sorted(results, key=lambda result: str(result["case"]))


def earlier_answer(path: Path, case: str) -> int | None:
    searches = json.loads(path.read_text())["searches"]
    return next((s["largest_batch"] for s in searches if s["case"] == case), None)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for one model")
    parser.add_argument("--near", type=Path, help="answers to try first")
    parser.add_argument("--one", help="search for this model in this process")
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    if options.one:
        search = next(s for s in SEARCHES if s.case == options.one)
        near = earlier_answer(options.near, search.case) if options.near else None
        options.out.write_text(json.dumps(search_one(search, options.limit, near)))
        return 0
    searches = run_in_parallel(options)
    answer = {
        "command": "python ground_truth/harness/largest_batch.py",
        "torch": torch.__version__,
        "python": sys.version.split()[0],
        "searches": searches,
    }
    options.out.write_text(json.dumps(answer, indent=1) + "\n")
    return 0 if all(search["largest_batch"] is not None for search in searches) else 1


if __name__ == "__main__":
    sys.exit(main())
