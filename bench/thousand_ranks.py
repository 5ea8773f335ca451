"""What a job of 1,024 ranks costs: Llama 3 8B with FSDP2 × tensor parallel × pipeline.

    make bench-thousand-ranks

The ranks that differ are found and run on this machine: processor and wall time from start to
answer, and host memory of all processes together, as in `ranks.py`.
"""

from __future__ import annotations

import sys

from ranks import BENCH, cost

NODES, CARDS = 128, 8
TIME_LIMIT_S = 300.0
MEMORY_LIMIT_GIB = 24.0


def main() -> int:
    """Measure, print a table, and say whether it is within the limits."""
    launcher = ["torchrun", "--nnodes", str(NODES), "--nproc-per-node", str(CARDS)]
    found = cost(
        ["--count", str(CARDS), "--nodes", str(NODES), "--ranks", "distinct"],
        [*launcher, str(BENCH / "train_llama_8b.py"), "--pipeline", "4", "--tensor", "8"],
    )
    print(
        f"{found.ranks} of {NODES * CARDS} ranks were run, {found.cpu_seconds:.0f} s of processor"
    )
    rows = [
        ("start to answer", found.seconds, TIME_LIMIT_S, " s"),
        ("host memory of all processes", found.memory_gib, MEMORY_LIMIT_GIB, " GiB"),
    ]
    for title, value, limit, unit in rows:
        verdict = "ok" if value <= limit else "TOO MUCH"
        print(f"{title:40} {value:8.1f}{unit} of {limit:g}{unit}: {verdict}")
    return int(any(value > limit for _, value, limit, _ in rows))


if __name__ == "__main__":
    sys.exit(main())
