"""What a training step has the card do, for each case of `launch_equals_rehearsal.py`.

    ghostgpu run --gpu h200 --full --no-retry --no-breakdown \\
        ground_truth/harness/record_work.py --out work.jsonl
    gzip -9n work.jsonl && mv work.jsonl.gz ground_truth/h200/tricks/

Needs no card. Cases that the file has already are left out. Every case is a line of JSON: its
name, and the work of its last step as the stand-in library wrote it down.
`crates/cost/tests/measured.rs` holds what follows from it against `launched.jsonl`.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
from pathlib import Path
from typing import Any

import launch_equals_rehearsal as launched

MEASURED = Path(__file__).resolve().parents[1] / "h200" / "tricks" / "launched.jsonl"


def recorded(case: launched.Case, workload: launched.Workload) -> dict[str, Any]:
    """Run a case in this process; the work of its last step."""
    figures = launched.run_case(case, workload)
    if "seconds_per_step" not in figures:
        return figures
    run_dir = Path(json.loads(Path(os.environ["GHOSTGPU_SESSION"]).read_text())["run_dir"])
    lines = (run_dir / f"work-{os.getpid()}.jsonl").read_text().splitlines()
    return {"work": json.loads(lines[-1])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    # A rehearsal takes its time on a busy machine.
    launched.LONGEST_CASE_SECONDS = 600
    present = {line["name"] for line in launched._lines(arguments.out)}
    measured = {line["name"] for line in launched._lines(MEASURED) if "seconds_per_step" in line}
    wanted = measured - present
    cases = [
        (f"{model}/{name}", model, case)
        for model in launched.Case.models
        for name, case in launched.CASES.items()
        if f"{model}/{name}" in wanted
    ]
    workloads = launched.workloads({model for _, model, _ in cases})
    for name, model, case in cases:
        figures = launched.in_a_copy(functools.partial(recorded, case, workloads[model]))
        if "work" not in figures:
            print(f"{name} is missing: {figures}", flush=True)
            continue
        with arguments.out.open("a") as out:
            out.write(json.dumps({"name": name, **figures}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
