"""What linting 1,000 training scripts costs, compared with two other linters.

    make bench-lint

The scripts are generated (`training_scripts.py`), the same ones every time. All programs run in
turn on the same two cores; figures are medians. Ruff parses every file into the same syntax tree
and applies its default rules, without its cache; TorchFix looks for mistakes with PyTorch, in
Python.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from training_scripts import write

REPOSITORY = Path(__file__).resolve().parents[1]
PROGRAM = os.environ.get("GHOSTGPU_COMMAND") or str(REPOSITORY / "target/release/ghostgpu")
BIN = Path(sys.executable).parent

COUNT = 1_000
CORES = 2
ROUNDS = 7
# TorchFix takes more than a minute, so once is enough.
TORCHFIX_ROUNDS = 1
LIMIT_S = 1.0

COMMANDS = {
    "ghostgpu lint": [PROGRAM, "lint", "--fail-on", "never"],
    "ruff check": [str(BIN / "ruff"), "check", "--isolated", "--no-cache", "--exit-zero"],
    "torchfix": [str(BIN / "torchfix"), "--select=ALL"],
}


def seconds(words: list[str], folder: Path) -> tuple[float, str]:
    """How long a command takes on two cores, and the last line that it prints."""
    begin = time.perf_counter()
    done = subprocess.run(
        [*words, "."], cwd=folder, capture_output=True, text=True, check=False, timeout=900
    )
    taken = time.perf_counter() - begin
    if done.returncode not in (0, 1):
        sys.exit(f"error: {' '.join(words)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    lines = done.stdout.strip().splitlines() or done.stderr.strip().splitlines() or [""]
    return taken, lines[-1]


def main() -> int:
    cores = sorted(os.sched_getaffinity(0))[:CORES]
    os.sched_setaffinity(0, cores)
    with tempfile.TemporaryDirectory(prefix="ghostgpu-bench-") as name:
        folder = Path(name)
        lines = write(folder, COUNT)
        print(f"{COUNT:,} scripts, {lines:,} lines, {len(cores)} cores")
        times: dict[str, list[float]] = {program: [] for program in COMMANDS}
        last: dict[str, str] = {}
        for number in range(ROUNDS):
            for program, words in COMMANDS.items():
                if program == "torchfix" and number >= TORCHFIX_ROUNDS:
                    continue
                taken, last[program] = seconds(words, folder)
                times[program].append(taken)
    medians = {program: statistics.median(taken) for program, taken in times.items()}
    for program, median in medians.items():
        limit = f"  (under {LIMIT_S:g} s)" if program == "ghostgpu lint" else ""
        print(f"  {program:<14} {median:7.2f} s{limit}  {last[program]}")
    return 0 if medians["ghostgpu lint"] < LIMIT_S else 1


if __name__ == "__main__":
    sys.exit(main())
