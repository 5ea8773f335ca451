"""The smallest memory at which whole trainings end on a real card, and their largest batches.

    python ground_truth/verdicts/smallest_limits.py --out DIR [--jobs a,b] [--workers 8]
    ghostgpu run --gpu h200 --steps 0 -- \\
        python ground_truth/verdicts/smallest_limits.py --out DIR \\
        --check ground_truth/h200/verdicts/verdicts.json

The second asks a card only about the two neighbours that were recorded: much quicker than a search.

Every job runs once without a limit, then under limits that
`torch.cuda.set_per_process_memory_fraction` sets, found by bisection in steps of 2 MiB, the unit
of PyTorch's segments. Both neighbours of the answer were run: the limit at which the training
ends, and the one 2 MiB below, at which it does not. Each run is a fork of a process that has
imported everything and has never used CUDA, so it is as fresh as a new process. Memory is each
process's own: several share the card.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import runpy
import shlex
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

try:
    import tomllib
except ImportError:
    import tomli as tomllib  # type: ignore[import-not-found, no-redef]

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))

from forked import ForkedProcess, import_everything
from run_case import environment_facts

SEGMENT_BYTES = 2 << 20
TIMEOUT_S = 90.0
#: Memory for the search of the largest batch, in parts of the smallest that the job needs.
BATCH_LIMIT = 1.4

Result = dict[str, Any]


def jobs() -> dict[str, dict[str, Any]]:
    table: dict[str, dict[str, Any]] = tomllib.loads((HERE / "jobs.toml").read_text())["jobs"]
    return table


def run_under(command: str, limit_bytes: int | None) -> Result:
    """One whole training, under a limit for PyTorch's memory."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        log = Path(folder) / "log.txt"
        work = Path(folder) / "work"
        work.mkdir()

        def train() -> int:
            os.chdir(work)
            answer.write_text(json.dumps(_train(command, limit_bytes)))
            return 0

        process = ForkedProcess(train, log)
        deadline = time.monotonic() + TIMEOUT_S
        while process.poll() is None:
            if time.monotonic() > deadline:
                process.kill()
                process.wait()
                return {"outcome": "timed-out"}
            time.sleep(0.02)
        if not answer.exists():
            return {"outcome": "failed", "text": log.read_text(errors="replace")[-1500:]}
        result: Result = json.loads(answer.read_text())
        return result


def _train(command: str, limit_bytes: int | None) -> Result:
    import torch

    total = torch.cuda.get_device_properties(0).total_memory
    if limit_bytes is not None:
        # Half a byte more, since PyTorch rounds the product down.
        torch.cuda.set_per_process_memory_fraction((limit_bytes + 0.5) / total)
    script, *words = shlex.split(command)
    sys.argv = [script, *words]
    outcome, text = "ended", None
    try:
        with contextlib.suppress(SystemExit):
            runpy.run_path(str(HERE / "scripts" / script), run_name="__main__")
    except torch.OutOfMemoryError as error:
        outcome, text = "out-of-memory", str(error)
    except Exception as error:  # noqa: BLE001
        # cuDNN's own words for a workspace that it could not get.
        if "unable to find an engine" in str(error) or "CUDNN_STATUS_ALLOC_FAILED" in str(error):
            outcome, text = "out-of-memory", str(error)
        else:
            outcome, text = "failed", traceback.format_exc()[-1500:]
    statistics = torch.cuda.memory_stats()
    return {
        "outcome": outcome,
        "text": text,
        "peak_allocated_bytes": statistics.get("allocated_bytes.all.peak", 0),
        "peak_reserved_bytes": statistics.get("reserved_bytes.all.peak", 0),
        "retries": statistics.get("num_alloc_retries", 0),
    }


def measure(item: tuple[str, dict[str, Any]]) -> tuple[str, Result]:
    name, job = item
    started = time.monotonic()
    command = job["command"]
    unlimited = run_under(command, None)
    result: Result = {"command": command, "unlimited": unlimited}
    if unlimited["outcome"] == "ended":
        result.update(smallest_limit(command, unlimited))
        if job.get("largest_batch"):
            result["largest_batch"] = largest_batch(command, result["smallest_limit_bytes"])
    result["seconds"] = round(time.monotonic() - started, 1)
    return name, result


def smallest_limit(command: str, unlimited: Result) -> Result:
    """Between a limit at which the training does not end and one at which it does, 2 MiB apart."""
    allocated = unlimited["peak_allocated_bytes"] // SEGMENT_BYTES
    fails, ends = allocated - 1, -(-unlimited["peak_reserved_bytes"] // SEGMENT_BYTES)
    runs: dict[int, Result] = {}
    while ends - fails > 1 or (ends == allocated and fails > 0):
        if ends - fails == 1:
            # It may end with less than it allocates, because cuDNN has smaller workspaces.
            fails = 0
        middle = (ends + fails) // 2
        runs[middle] = run_under(command, middle * SEGMENT_BYTES)
        if runs[middle]["outcome"] == "ended":
            ends = middle
        elif runs[middle]["outcome"] == "out-of-memory":
            fails = middle
        else:
            return {"smallest_limit_bytes": None, "failed": runs[middle]}
    at = {
        limit: runs.get(limit) or run_under(command, limit * SEGMENT_BYTES)
        for limit in (fails, ends)
    }
    return {
        "smallest_limit_bytes": ends * SEGMENT_BYTES,
        "at_smallest": at[ends],
        "below": at[fails],
        "runs": {str(limit * SEGMENT_BYTES): run["outcome"] for limit, run in sorted(runs.items())},
    }


def largest_batch(command: str, smallest_bytes: int) -> Result:
    """The largest batch under a limit a little above what the job itself needs."""
    limit = int(smallest_bytes * BATCH_LIMIT) // SEGMENT_BYTES * SEGMENT_BYTES
    fits, too_large = 0, None
    size = 1
    outcomes: dict[int, str] = {}
    while too_large is None or too_large - fits > 1:
        size = fits * 2 if too_large is None and fits else (fits + (too_large or 2)) // 2 or 1
        outcomes[size] = run_under(f"{command} --batch-size {size}", limit)["outcome"]
        if outcomes[size] == "ended":
            fits = size
        elif outcomes[size] == "out-of-memory":
            too_large = size
        elif size < 4:
            # One or two samples may be too few for batch normalisation.
            fits = max(fits, 4)
        else:
            break
        if fits > 100_000:
            break
    return {
        "limit_bytes": limit,
        "largest": fits,
        "runs": {str(size): outcome for size, outcome in sorted(outcomes.items())},
    }


def check(item: tuple[str, dict[str, Any]]) -> tuple[str, Result]:
    """What the recorded limits come to on this card."""
    name, recorded = item
    started = time.monotonic()
    smallest = recorded["smallest_limit_bytes"]
    return name, {
        "unlimited": run_under(recorded["command"], None),
        "at_smallest": run_under(recorded["command"], smallest),
        "below": run_under(recorded["command"], smallest - SEGMENT_BYTES),
        "smallest_limit_bytes": smallest,
        "seconds": round(time.monotonic() - started, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", help="only these, separated by commas")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--check", type=Path, help="ask only about the limits in this file")
    options = parser.parse_args()
    chosen = json.loads(options.check.read_text())["verdicts"] if options.check else jobs()
    if options.jobs:
        chosen = {name: chosen[name] for name in options.jobs.split(",")}
    options.out.mkdir(parents=True, exist_ok=True)
    import_everything()
    for library in ("lightning", "accelerate"):
        __import__(library)
    work = check if options.check else measure
    results: dict[str, Result] = {}
    path = options.out / "verdicts.json"
    with multiprocessing.get_context("fork").Pool(options.workers) as pool:
        for name, result in pool.imap_unordered(work, chosen.items()):
            results[name] = result
            outcomes = [
                result[key]["outcome"]
                for key in ("unlimited", "at_smallest", "below")
                if key in result
            ]
            shown = (
                *outcomes,
                result.get("smallest_limit_bytes"),
                (result.get("largest_batch") or {}).get("largest"),
            )
            print(
                name, result["unlimited"]["outcome"], *shown, f"{result['seconds']} s", flush=True
            )
            # Written after each, so that a run that is cut off leaves what it had.
            path.write_text(json.dumps(dict(sorted(results.items())), indent=1) + "\n")
    facts = {
        "command": "python ground_truth/verdicts/smallest_limits.py --out DIR",
        "environment": environment_facts(True),
        "verdicts": dict(sorted(results.items())),
    }
    path.write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
