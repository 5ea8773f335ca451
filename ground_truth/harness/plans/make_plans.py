"""What `ghostgpu plan` recommends for the jobs of `jobs.toml` on H200s with little memory.

    python ground_truth/harness/plans/make_plans.py \\
        --ghostgpu target/debug/ghostgpu --out ground_truth/h200/plans/plans.jsonl \\
        --rehearsals 20 --largest-batch 8,11

Needs no card. Every (job, memory) pair is a line of JSON; pairs that the file has already are left
out. `measure_plans.py` runs the same scripts with the same tricks on a real card.

With `--only-largest-batch`, the plans that the file has stay as they are, and `ghostgpu max-batch`
finds the largest batch with their tricks where none is known.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Callable

try:
    import tomllib
except ImportError:
    import tomli as tomllib  # type: ignore[import-not-found, no-redef]

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
#: What is kept of each candidate, for `measure_plans.py` and for the comparison of times.
CANDIDATE_FIELDS = (
    "tricks",
    "in_words",
    "outcome",
    "peak_allocated_bytes",
    "peak_reserved_bytes",
    "peak_device_bytes",
    "relative_time",
    "numerics",
)


def pairs() -> list[dict[str, Any]]:
    """Every job at every amount of memory, the amounts taking turns."""
    jobs = tomllib.loads((HERE / "jobs.toml").read_text())["jobs"]
    made = [
        {
            "name": f"{name} on {gib} GiB",
            "script": job.get("script", "train.py"),
            "arguments": [*job.get("arguments", []), "--batch-size", str(batch)],
            "batch": batch,
            "gib": int(gib),
            "allow": job.get("allow", ""),
        }
        for name, job in jobs.items()
        for gib, batch in job["batches"].items()
    ]
    order = [str(gib) for gib in (11, 8, 16, 24)]
    return sorted(made, key=lambda pair: order.index(str(pair["gib"])))


def plan(
    pair: dict[str, Any], ghostgpu: str, python: str, rehearsals: int, has_largest: bool
) -> dict[str, Any]:
    """Ask for a plan; the pair with the answer's figures, or with why there is none."""
    with tempfile.TemporaryDirectory() as folder:
        answer_file = Path(folder) / "plan.json"
        command = [
            *(ghostgpu, "plan", "--gpu", "h200", "--memory", f"{pair['gib']}GiB"),
            *("--python", python, "--quiet", "--json", str(answer_file)),
            *("--rehearsals", str(rehearsals)),
            *(("--allow", pair["allow"]) if pair["allow"] else ()),
            *(("--largest-batch", "--arg", "--batch-size") if has_largest else ()),
            str((HERE / "scripts" / pair["script"]).relative_to(ROOT)),
            *pair["arguments"],
        ]
        begin = time.monotonic()
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        seconds = round(time.monotonic() - begin, 1)
        if not answer_file.exists():
            return {**pair, "failed": ended.stderr[-800:]}
        answer = json.loads(answer_file.read_text())
    recommended = answer["recommended"]
    candidates = [
        {field: candidate.get(field) for field in CANDIDATE_FIELDS}
        for candidate in answer["candidates"]
    ]
    return {
        **pair,
        "result": answer["result"],
        "capacity_bytes": answer["capacity_bytes"],
        "as_it_is": answer["as_it_is"],
        "recommended": None if recommended is None else candidates[recommended],
        "others": [
            each
            for place, each in enumerate(candidates)
            if place != recommended and each["outcome"] in ("fits", "fits-tightly")
        ],
        "largest_batch": answer["largest_batch"],
        "rehearsals": answer["rehearsals"],
        "stopped": answer["stopped"],
        "versions": {"torch": answer["torch"], **answer["versions"]},
        "seconds": seconds,
    }


def largest_batch(plan: dict[str, Any], ghostgpu: str, python: str) -> dict[str, Any]:
    """The plan with the largest batch that fits with its tricks, or with why there is none."""
    with tempfile.TemporaryDirectory() as folder:
        answer_file, plan_file = Path(folder) / "answer.json", Path(folder) / "plan.toml"
        plan_file.write_text(as_plan_file(plan["recommended"]["tricks"]))
        command = [
            *(ghostgpu, "max-batch", "--gpu", "h200", "--memory", f"{plan['gib']}GiB"),
            *("--python", python, "--quiet", "--json", str(answer_file)),
            *("--plan", str(plan_file), "--arg", "--batch-size"),
            str((HERE / "scripts" / plan["script"]).relative_to(ROOT)),
            *plan["arguments"],
        ]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        answer = json.loads(answer_file.read_text()) if answer_file.exists() else {}
    if answer.get("largest_batch") is None:
        return {**plan, "failed": ended.stderr[-800:]}
    return {**plan, "largest_batch": {"batch": answer["largest_batch"], "own": plan["batch"]}}


def as_plan_file(tricks: list[dict[str, Any]]) -> str:
    """What `--plan` reads: a table for each trick, with its options."""
    tables = []
    for trick in tricks:
        options = trick.get("options", {})
        lines = [f"{name} = {json.dumps(value)}" for name, value in options.items()]
        tables.append("\n".join([f"[tricks.{trick['name']}]", *lines]) + "\n")
    return "\n".join(tables)


def add_largest_batches(
    path: Path, plans: list[dict[str, Any]], ask: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    """Writes the file again after each answer."""
    for place, plan in enumerate(plans):
        if plan["largest_batch"] is None and plan["recommended"] is not None:
            answered = ask(plan)
            print(
                f"{plan['name']}: {answered.get('failed') or answered['largest_batch']}", flush=True
            )
            if "failed" not in answered:
                plans[place] = answered
                path.write_text("".join(json.dumps(plan) + "\n" for plan in plans))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--ghostgpu", default="ghostgpu")
    parser.add_argument("--python", default=sys.executable, help="one that has torch")
    parser.add_argument("--rehearsals", type=int, default=80)
    parser.add_argument(
        "--largest-batch",
        default="",
        metavar="GIB,…",
        help="find the largest batch with the tricks too, for these amounts of memory",
    )
    parser.add_argument("--only-largest-batch", action="store_true")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1e9, help="begin nothing after this long")
    parser.add_argument("--only", default="", help="pairs with this text in their names")
    options = parser.parse_args()
    amounts = options.largest_batch.split(",")
    text = options.out.read_text() if options.out.exists() else ""
    known = [json.loads(line) for line in text.splitlines()]
    begin = time.monotonic()
    if options.only_largest_batch:

        def ask_for_batch(plan: dict[str, Any]) -> dict[str, Any]:
            is_asked = options.only in plan["name"] and str(plan["gib"]) in amounts
            if not is_asked or time.monotonic() - begin > options.seconds:
                return {**plan, "failed": "not asked"}
            return largest_batch(plan, options.ghostgpu, options.python)

        add_largest_batches(options.out, known, ask_for_batch)
        return
    present = {plan["name"] for plan in known}
    missing = [
        pair for pair in pairs() if pair["name"] not in present and options.only in pair["name"]
    ]

    def ask(pair: dict[str, Any]) -> dict[str, Any]:
        if time.monotonic() - begin > options.seconds:
            return {**pair, "failed": "the time is over"}
        has_largest = str(pair["gib"]) in amounts
        return plan(pair, options.ghostgpu, options.python, options.rehearsals, has_largest)

    with ThreadPoolExecutor(options.workers) as pool:
        for asked in as_completed([pool.submit(ask, pair) for pair in missing]):
            line = asked.result()
            best = line.get("recommended") or {}
            words = line.get("failed") or f"{line['result']}: {best.get('in_words')}"
            print(f"{line['name']}: {words} ({line.get('seconds')} s)", flush=True)
            if "failed" not in line:
                with options.out.open("a") as out:
                    out.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
