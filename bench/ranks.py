"""What a job of eight ranks costs compared with one rank: GPT-2 with FSDP2, from start to answer.

    make bench-ranks

* CPU time of all processes of a rehearsal, relative to eight times that of one rank;
* host memory of all processes together: sampled proportional set sizes, in which pages that ranks
  share count once;
* time from start to answer.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

BENCH = Path(__file__).resolve().parent
PROGRAM = os.environ.get("GHOSTGPU_COMMAND") or str(BENCH.parent / "target/release/ghostgpu")

RANKS = 8
CPU_LIMIT = 1.0
MEMORY_LIMIT_GIB = 8.0
TIME_LIMIT_S = 90.0
SAMPLES_EACH_S = 0.5


@dataclass(frozen=True)
class Cost:
    """The cost of one rehearsal."""

    seconds: float
    cpu_seconds: float
    memory_gib: float
    ranks: int


def main() -> int:
    """Measure, print a table, and say whether it is within the limits."""
    one, eight = rehearse(1), rehearse(RANKS)
    share = eight.cpu_seconds / (RANKS * one.cpu_seconds)
    rows = [
        (f"processor time over {RANKS} × one rank", share, CPU_LIMIT, ""),
        ("host memory of all ranks", eight.memory_gib, MEMORY_LIMIT_GIB, " GiB"),
        ("start to answer", eight.seconds, TIME_LIMIT_S, " s"),
    ]
    print(f"{'one rank':40} {one.seconds:8.1f} s, {one.cpu_seconds:.1f} s of processor")
    print(f"{f'{eight.ranks} ranks':40} {eight.seconds:8.1f} s, {eight.cpu_seconds:.1f} s")
    for title, value, limit, unit in rows:
        verdict = "ok" if value <= limit else "TOO MUCH"
        print(f"{title:40} {value:8.2f}{unit} of {limit:g}{unit}: {verdict}")
    return int(any(value > limit for _, value, limit, _ in rows))


def rehearse(ranks: int) -> Cost:
    """One run with this many ranks, each on its own card."""
    launcher = ["torchrun", "--standalone", "--nproc-per-node", str(ranks)]
    return cost(
        ["--count", str(ranks), "--steps", "3"], [*launcher, str(BENCH / "train_gpt2_fsdp2.py")]
    )


def cost(options: list[str], job: list[str]) -> Cost:
    """What a rehearsal with these options takes."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        command = [PROGRAM, "run", "--gpu", "h100", *options, "--python", sys.executable]
        command += ["--quiet", "--json", str(answer), "--", *job]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        started = time.monotonic()
        most = 0
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            while process.poll() is None:
                most = max(most, proportional_bytes(process.pid))
                time.sleep(SAMPLES_EACH_S)
        seconds = time.monotonic() - started
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        told = json.loads(answer.read_text())
        if process.returncode != 0:
            sys.exit(f"the rehearsal ended with code {process.returncode}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(seconds, cpu, most / 2**30, max(1, len(told["ranks"])))


def proportional_bytes(root: int) -> int:
    """Memory of a process and its descendants; shared pages count proportionally."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue  # it has ended
            parents[int(entry.name)] = int(fields[1])
    family, found = {root}, True
    while found:
        children = {pid for pid, parent in parents.items() if parent in family}
        found = not children <= family
        family |= children
    return sum(map(proportional_bytes_of, family))


def proportional_bytes_of(pid: int) -> int:
    """The proportional set size of a process; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    sizes = [int(line.split()[1]) for line in lines if line.startswith("Pss:")]
    return 1024 * sum(sizes)


if __name__ == "__main__":
    sys.exit(main())
