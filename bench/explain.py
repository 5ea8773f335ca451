"""What explaining a large log costs: seconds and memory.

    make bench-explain

Logs of 100 MB are generated, of very different kinds: a training with progress bars, eight ranks in
colour, a trainer that prints its memory with every line, and nothing but out-of-memory errors.
Each has an error at its end, and `ghostgpu explain` must find it.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
RELEASE = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target")) / "release"
PROGRAM = os.environ.get("GHOSTGPU_COMMAND") or str(RELEASE / "ghostgpu")

SIZE = 100_000_000
ROUNDS = 5
SECONDS_LIMIT = 1.0
MEMORY_LIMIT_MB = 50

ERROR = (
    "Traceback (most recent call last):\n"
    '  File "train.py", line 82, in main\n'
    "    loss.backward()\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked}.00 MiB. GPU 0 has a "
    "total capacity of 23.65 GiB of which 11.06 MiB is free. Including non-PyTorch memory, this "
    "process has 23.60 GiB memory in use. Of the allocated memory 22.90 GiB is allocated by "
    "PyTorch, and 194.87 MiB is reserved by PyTorch but unallocated.\n"
)


def progress_bars() -> Iterator[str]:
    step = 0
    while True:
        step += 1
        done = "█" * (step % 40)
        counts = f"{step}/1000000 [1:02:03<2:03:04, 5.67it/s, loss=0.1]"
        yield f"\rEpoch 3: {step % 100:3d}%|{done:<40}| {counts}"
        if step % 50 == 0:
            yield f"\n2026-01-02 03:04:05,678 INFO train.py:99 step {step} loss 0.1234 lr 1.0e-04\n"


def ranks_in_colour() -> Iterator[str]:
    step = 0
    while True:
        step += 1
        rank = step % 8
        text = f"all-reduce of bucket {step} took 0.0{step % 10} s"
        yield f"\x1b[36m[rank{rank}]:\x1b[0m \x1b[32mINFO\x1b[0m {text}\n"


def memory_in_every_line() -> Iterator[str]:
    step = 0
    while True:
        step += 1
        yield (
            f"2026/01/02 03:04:05 - mmengine - INFO - Iter(train) [{step}/900000]  lr: 1.0e-04  "
            f"eta: 1 day  time: 0.51  memory: {9000 + step % 7}  loss: 0.123  loss_cls: 0.08\n"
        )


def nothing_but_errors() -> Iterator[str]:
    asked = 0
    while True:
        asked += 1
        yield ERROR.format(asked=20 + asked % 5000)


def write_log(path: Path, lines: Iterator[str]) -> None:
    size = 0
    with path.open("w", encoding="utf-8", newline="") as log:
        while size < SIZE:
            text = "".join(next(lines) for _ in range(2000))
            size += log.write(text)
        log.write("\n" + ERROR.format(asked=12345))


def run(path: Path) -> tuple[float, float, float]:
    """Wall-clock seconds, CPU seconds, and the peak in MB. The last error must be found."""
    begin = time.perf_counter()
    child = subprocess.Popen([PROGRAM, "explain", "--json", str(path)], stdout=subprocess.PIPE)
    assert child.stdout is not None
    answer = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - begin
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"error: {PROGRAM} ended with {child.returncode}")
    document = json.loads(answer)
    found = [document["finding"], *document["others"]]
    if not any(finding["figures"]["requested"]["bytes"] == 12345 << 20 for finding in found):
        sys.exit(f"error: the last message of {path} was not found")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6


def main() -> int:
    fine = True
    kinds = {
        "progress bars": progress_bars,
        "eight ranks in colour": ranks_in_colour,
        "memory in every line": memory_in_every_line,
        "nothing but errors": nothing_but_errors,
    }
    print(f"a log of {SIZE / 1e6:,.0f} MB")
    for name, lines in kinds.items():
        with tempfile.TemporaryDirectory(prefix="ghostgpu-bench-") as folder:
            path = Path(folder) / "train.log"
            write_log(path, lines())
            rounds = [run(path) for _ in range(ROUNDS)]
        seconds = statistics.median(seconds for seconds, _, _ in rounds)
        # CPU time of a single thread, so that other load on the machine does not count.
        busy = statistics.median(busy for _, busy, _ in rounds)
        peak_mb = max(peak for _, _, peak in rounds)
        fine &= busy < SECONDS_LIMIT and peak_mb < MEMORY_LIMIT_MB
        limits = f"under {SECONDS_LIMIT:g} s of the processor, {MEMORY_LIMIT_MB} MB"
        print(f"  {name:<22} {seconds:5.2f} s, {busy:.2f} s of the processor, {peak_mb:3.0f} MB")
    print(f"  ({limits})")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
