"""What PyTorch's allocator did in whole trainings under a limit, entry by entry.

    python ground_truth/verdicts/limited_histories.py --out DIR [--workers 4] REQUESTS.json

On whatever card there is. Every request is a command of `jobs.toml`, the limits and batches to run
it with, how often, and whether its history is wanted. A run is a process of its own, or a fork of
one that has imported everything, as in `smallest_limits.py`: host addresses differ between the two,
and with them where the driver puts segments.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shlex
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "harness"))

from smallest_limits import _train

TIMEOUT_S = 600.0
#: One letter for each kind of entry.
LETTERS = {
    "alloc": "a",
    "free_requested": "r",
    "free_completed": "f",
    "segment_alloc": "S",
    "segment_free": "F",
    "oom": "O",
}


def run_here(command: str, limit_bytes: int, history: Path | None) -> dict[str, Any]:
    """One training in this process."""
    import torch

    if history is not None:
        torch.cuda.init()
        # Without stacks: collecting them has been seen to disturb a run.
        torch.cuda.memory._record_memory_history("all", context=None, stacks="python")
    result = _train(command, limit_bytes)
    if history is not None:
        rows = torch.cuda.memory._snapshot()["device_traces"][0]
        rows = [row for row in rows if row["action"] in LETTERS]
        recorded = {
            "actions": "".join(LETTERS[row["action"]] for row in rows),
            "addresses": [int(row.get("addr", 0)) for row in rows],
            "sizes": [int(row["size"]) for row in rows],
        }
        history.write_bytes(gzip.compress(json.dumps(recorded).encode(), mtime=0))
    return result


def run_forked(command: str, limit_bytes: int, history: Path | None) -> dict[str, Any]:
    """The same in a fork of this process once it has imported what `smallest_limits.py` imports."""
    from forked import ForkedProcess, import_everything

    import_everything()
    for library in ("lightning", "accelerate"):
        __import__(library)
    answer = Path("answer.json")

    def train() -> int:
        answer.write_text(json.dumps(run_here(command, limit_bytes, history)))
        return 0

    process = ForkedProcess(train, Path("log.txt"))
    process.wait()
    if not answer.exists():
        return {"outcome": "failed", "text": Path("log.txt").read_text(errors="replace")[-1500:]}
    result: dict[str, Any] = json.loads(answer.read_text())
    return result


def run_elsewhere(run: dict[str, Any]) -> dict[str, Any]:
    """One run in a process of its own, in an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, str(Path(__file__).resolve()), "--one", json.dumps(run)]
        began = time.monotonic()
        try:
            done = subprocess.run(
                words, cwd=folder, capture_output=True, text=True, check=False, timeout=TIMEOUT_S
            )
        except subprocess.TimeoutExpired:
            return {**run, "outcome": "timed-out"}
        lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
        if not lines:
            return {**run, "outcome": "failed", "text": (done.stdout + done.stderr)[-1500:]}
        result = json.loads(lines[-1].removeprefix("RESULT "))
        return {**run, **result, "seconds": round(time.monotonic() - began, 1)}


def runs_of(requests: list[dict[str, Any]], out: Path) -> list[dict[str, Any]]:
    """Every run that the requests ask for, in their order."""
    runs: list[dict[str, Any]] = []
    for request in requests:
        for limit in request["limits"]:
            for batch in request.get("batches", [None]):
                for is_forked in request.get("forked", [False]):
                    for turn in range(request.get("times", 1)):
                        words = [] if batch is None else ["--batch-size", str(batch)]
                        place = "fork" if is_forked else "process"
                        name = f"{request['name']}-{batch or limit}-{place}-{turn}"
                        history = out / f"{name}.json.gz" if request.get("history") else None
                        runs.append(
                            {
                                "name": name,
                                "command": shlex.join([*shlex.split(request["command"]), *words]),
                                "limit_bytes": limit,
                                "is_forked": is_forked,
                                "history": str(history.resolve()) if history else None,
                            }
                        )
    return runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("requests", type=Path, nargs="?")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        run = json.loads(options.one)
        history = Path(run["history"]) if run["history"] else None
        work = run_forked if run["is_forked"] else run_here
        print("RESULT " + json.dumps(work(run["command"], run["limit_bytes"], history)), flush=True)
        return
    options.out.mkdir(parents=True, exist_ok=True)
    runs = runs_of(json.loads(options.requests.read_text()), options.out)
    results = []
    with ThreadPoolExecutor(options.workers) as pool:
        for result in pool.map(run_elsewhere, runs):
            results.append(result)
            print(result["name"], result["outcome"], result.get("retries"), flush=True)
            # Written after each, so that a run that is cut off leaves what it had.
            (options.out / "runs.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
