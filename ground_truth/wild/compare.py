"""Compares what public scripts came to on a virtual card with what they came to on a real one.

    python ground_truth/wild compare ground_truth/wild/h200.json virtual.json

A script is equal when it ended the same way and every process has the same peak allocated and peak
reserved bytes on every card. Some are not like themselves on the real card: such a one is equal if
it is like one of its runs there, and `between` if each figure lies between theirs. Numbers of
optimizer steps are shown where they differ: a gradient scaler skips steps whose gradients overflow,
which depends on values. `deviations.toml` says why scripts are not equal. Exit code 1: a script
that ran on the real card does not run on the virtual one and is not in that list, one is off by
more than the list accounts for, or of the scripts that are like themselves fewer are equal than
`--at-least` asks for.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from .deviations import Deviation, disagreements, read_deviations
from .events import differences, read_events

EXACT = ("peak_allocated_bytes", "peak_reserved_bytes")
RAN = ("completed", "out of memory")


@dataclass(frozen=True)
class Comparison:
    script: str
    #: equal, between (the real card's own runs), differs, failed (on the virtual card alone), not
    #: measured (failed on the real one too)
    verdict: str
    #: Why, if it is not equal.
    reason: str = ""
    #: The largest relative error of a peak.
    relative_error: float = 0.0
    #: Runs on the real card that were not alike.
    is_unsteady: bool = False
    #: The numbers of optimizer steps, where they are not alike.
    steps: str = ""


def compare_script(
    name: str, real: dict[str, Any], virtual: Optional[dict[str, Any]]
) -> Comparison:
    runs = [real, *real.get("other_runs", [])]
    is_unsteady = any(_peaks(run) != _peaks(real) for run in runs)
    if real["outcome"] not in RAN:
        return Comparison(
            name, "not measured", f"{real['outcome']} on the real card: {_last_line(real)}"
        )
    if virtual is None:
        return Comparison(name, "failed", "was not run on the virtual card", 0.0, is_unsteady)
    if virtual["outcome"] != real["outcome"]:
        reason = f"{virtual['outcome']} instead of {real['outcome']}: {_last_line(virtual)}"
        return Comparison(name, "failed", reason, 0.0, is_unsteady)
    # A script that is not like itself is equal if it is like one of its own runs.
    differences, error = min(
        (_differences(run, virtual) for run in runs), key=lambda found: found[1]
    )
    if not differences:
        verdict = "equal"
    else:
        verdict = "between" if is_unsteady and _is_between(runs, virtual) else "differs"
    steps = _other_steps(real, virtual)
    return Comparison(name, verdict, ", ".join(differences), error, is_unsteady, steps)


def _other_steps(real: dict[str, Any], virtual: dict[str, Any]) -> str:
    of_real, of_virtual = (
        [process["optimizer_steps"] for process in run["processes"]] for run in (real, virtual)
    )
    if of_real == of_virtual:
        return ""
    return f"{sum(of_virtual)} steps instead of {sum(of_real)}"


def _differences(real: dict[str, Any], virtual: dict[str, Any]) -> tuple[list[str], float]:
    differences: list[str] = []
    error = 0.0
    if len(real["processes"]) != len(virtual["processes"]):
        count = f"{len(virtual['processes'])} processes instead of {len(real['processes'])}"
        return [count], 1.0
    for one, other in zip(real["processes"], virtual["processes"]):
        for real_card, virtual_card in zip(one["cards"], other["cards"]):
            for key in EXACT:
                off = virtual_card[key] - real_card[key]
                if off:
                    share = off / real_card[key] if real_card[key] else 1.0
                    error = max(error, abs(share))
                    differences.append(f"{key.split('_')[1]} {off:+,} bytes ({share:+.2%})")
    return differences, error


def _is_between(runs: list[dict[str, Any]], virtual: dict[str, Any]) -> bool:
    """Whether every peak lies between the smallest and the largest of the real card's own runs."""
    of_runs = [[peak for process in _peaks(run) for peak in process] for run in runs]
    of_virtual = [peak for process in _peaks(virtual) for peak in process]
    if any(len(each) != len(of_virtual) for each in of_runs):
        return False
    return all(min(real) <= peak <= max(real) for peak, *real in zip(of_virtual, *of_runs))


def _peaks(run: dict[str, Any]) -> list[list[int]]:
    return [
        [card[key] for card in process["cards"] for key in EXACT] for process in run["processes"]
    ]


def _last_line(run: dict[str, Any]) -> str:
    """The exception of a traceback, or else the last line of the output."""
    lines = [line.strip() for line in run.get("output_end", "").splitlines() if line.strip()]
    exceptions = [line for line in lines if line.split(":")[0].endswith(("Error", "Exception"))]
    return (exceptions or lines or [""])[-1][:120]


def compare(real: dict[str, Any], virtual: dict[str, Any]) -> list[Comparison]:
    return [
        compare_script(name, result, virtual["scripts"].get(name))
        for name, result in sorted(real["scripts"].items())
    ]


def as_table(comparisons: list[Comparison], known: Optional[dict[str, Deviation]] = None) -> str:
    rows = []
    for found in comparisons:
        unsteady = " (the real card's own runs are not alike)" if found.is_unsteady else ""
        note = f" ({found.steps})" if found.steps else ""
        explained = found.verdict in ("differs", "failed", "between")
        deviation = (known or {}).get(found.script) if explained else None
        because = f" ({deviation.because})" if deviation else ""
        row = f"{found.script:<44} {found.verdict:<13} {found.reason}{note}{because}{unsteady}"
        rows.append(row.rstrip())
    counts = {
        verdict: sum(found.verdict == verdict for found in comparisons)
        for verdict in ("equal", "between", "differs", "failed", "not measured")
    }
    summary = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    equal, steady = equal_of_steady(comparisons)
    of_steady = f"{equal} of {steady} whose runs on the real card are alike are equal"
    return "\n".join([*rows, "", f"{len(comparisons)} scripts: {summary}", of_steady])


def equal_of_steady(comparisons: list[Comparison]) -> tuple[int, int]:
    """How many scripts are equal, of those that have one answer on the real card."""
    steady = [one for one in comparisons if one.verdict != "not measured" and not one.is_unsteady]
    return sum(one.verdict == "equal" for one in steady), len(steady)


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="wild compare",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("real", type=Path)
    parser.add_argument("virtual", type=Path)
    parser.add_argument(
        "--at-least",
        type=float,
        default=0.0,
        help="the share that must be equal, of scripts whose runs on the real card are alike",
    )
    parser.add_argument(
        "--events",
        type=Path,
        nargs=2,
        metavar=("REAL", "VIRTUAL"),
        help="what `measure --events` wrote: shows where the two histories part",
    )
    arguments = parser.parse_args(words)
    comparisons = compare(
        json.loads(arguments.real.read_text()), json.loads(arguments.virtual.read_text())
    )
    known = read_deviations()
    print(as_table(comparisons, known))
    unexplained = disagreements(comparisons, known)
    for sentence in unexplained:
        print(sentence)
    if arguments.events is not None:
        real, virtual = (read_events(path) for path in arguments.events)
        for found in comparisons:
            for line in differences(found.script, real, virtual):
                print(f"{found.script}: {line}")
    has_failed = any(
        found.verdict == "failed" and found.script not in known for found in comparisons
    )
    equal, steady = equal_of_steady(comparisons)
    is_too_few = equal < arguments.at_least * steady
    return 1 if has_failed or unexplained or is_too_few else 0
