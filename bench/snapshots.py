"""What opening a large memory snapshot costs, compared with Python's own unpickler.

    make bench-snapshots

A snapshot of 1 GB is generated in PyTorch's format (7.2 million events, 1,500 stacks of 30 frames).
Then, in turn: opening it and finding the peak and what held it; `pickle.load` alone, with the
garbage collector on, which is how `_memory_viz.py` and every viewer in Python begin; and the
summary of ptmem, a viewer from PyPI, if it can be installed. Finally, a history of a million events
is replayed under every sensible setting.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Optional

REPOSITORY = Path(__file__).resolve().parents[1]
RELEASE = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target")) / "release"
GENERATE = str(RELEASE / "examples" / "generate_snapshot")
PROGRAM = os.environ.get("GHOSTGPU_COMMAND") or str(RELEASE / "ghostgpu")

ALLOCATIONS = os.environ.get("GHOSTGPU_BENCH_ALLOCATIONS", "2400000")
HISTORY_ALLOCATIONS = "333000"
ROUNDS = 3
SEARCH_LIMIT = 30.0
SECONDS_LIMIT = 4.0
MEMORY_LIMIT_MB = 500
RATIO_LIMIT = 10.0

PEER = "ptmem==0.1.2"

PYTHON_LOAD = """
import pickle, sys
with open(sys.argv[1], "rb") as file:
    snapshot = pickle.load(file)
print(sum(map(len, snapshot["device_traces"])), "events")
"""


def run(words: list[str], environment: Optional[dict[str, str]] = None) -> tuple[float, float]:
    """Run a command to its end; returns seconds and its peak in MB."""
    begin = time.perf_counter()
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - begin
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"error: {' '.join(words)} ended with {child.returncode}")
    return seconds, usage.ru_maxrss * 1024 / 1e6


def run_peer(folder: str, path: str) -> Optional[tuple[float, float]]:
    """The same answer from a viewer on PyPI; None if it cannot be installed."""
    target = str(Path(folder) / "peer")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--target", target, PEER]
    if subprocess.run(install, capture_output=True).returncode != 0:
        return None
    command = [sys.executable, str(Path(target) / "bin" / "ptmem"), "--summary", path]
    return run(command, {**os.environ, "PYTHONPATH": target})


def show(what: str, seconds: float, peak_mb: float, note: str) -> None:
    print(f"  {what:<25} {seconds:7.2f} s {peak_mb:8,.0f} MB   ({note})")


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="ghostgpu-bench-") as folder:
        path = str(Path(folder) / "snapshot.pickle")
        run([GENERATE, path, ALLOCATIONS])
        size_mb = Path(path).stat().st_size / 1e6
        opening = [PROGRAM, "snapshot", "top", path]
        ours = [run(opening) for _ in range(ROUNDS)]
        python = run([sys.executable, "-c", PYTHON_LOAD, path])
        peer = run_peer(folder, path)
        ours += [run(opening) for _ in range(ROUNDS)]
        history = str(Path(folder) / "history.pickle")
        run([GENERATE, history, HISTORY_ALLOCATIONS])
        searched = run([PROGRAM, "replay", history, "--search"])
    seconds = statistics.median(seconds for seconds, _ in ours)
    peak_mb = max(peak for _, peak in ours)
    ratio = python[0] / seconds
    fine = seconds < SECONDS_LIMIT and peak_mb < MEMORY_LIMIT_MB and ratio >= RATIO_LIMIT
    fine &= searched[0] < SEARCH_LIMIT
    print(f"a snapshot of {size_mb:,.0f} MB")
    show(
        "open, peak, top holders",
        seconds,
        peak_mb,
        f"under {SECONDS_LIMIT:g} s, {MEMORY_LIMIT_MB} MB",
    )
    show("Python's pickle.load", *python, f"{ratio:.1f} × as long, at least {RATIO_LIMIT:g}")
    if peer is None:
        print(f"  {PEER} could not be installed, and was not measured")
    else:
        show(f"{PEER} --summary", *peer, f"{peer[0] / seconds:.1f} × as long")
    print("a history of 1,000,000 events")
    show("replay --search", *searched, f"every sensible setting, under {SEARCH_LIMIT:g} s")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
