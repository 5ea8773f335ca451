"""What was predicted of plans beside what a real card did: `plans.jsonl` and `measured.jsonl`.

    python ground_truth/harness/plans/results.py [ground_truth/h200/plans]

prints every pair of a job and an amount of memory, and the sums that `docs/plan.md` states.
"""

from __future__ import annotations

import itertools
import json
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "h200" / "plans"
#: Two plans differ in time if the slower one takes so much longer on the card.
DIFFERENCE = 1.1
#: The largest batch that is said must be so much of the true one.
SHARE = 0.97

Line = dict[str, Any]


@dataclass(frozen=True)
class RelativeTime:
    """The time of a plan's step, in those of the plain job's."""

    job: str
    plan: str
    predicted: float
    measured: float

    @property
    def error(self) -> float:
        return self.predicted / self.measured - 1


@dataclass(frozen=True)
class LargestBatch:
    pair: str
    said: int
    #: The largest batch that ended on the card, and the smallest that ran out of memory.
    ended: int
    too_large: int | None


class Results:
    def __init__(self, folder: Path = FOLDER) -> None:
        plans = _lines(folder / "plans.jsonl")
        self.measured = {line["name"]: line for line in _lines(folder / "measured.jsonl")}
        self.plans = [plan for plan in plans if f"{plan['name']}/capped" in self.measured]

    def capped(self, plan: Line) -> Line:
        line: Line = self.measured[f"{plan['name']}/capped"]
        return line

    def plain(self, plan: Line) -> Line | None:
        return self.measured.get(" ".join([plan["script"], *plan["arguments"]]) + "/plain")

    def different_peaks(self, plan: Line) -> list[str]:
        """Which of the two peaks are not those that were predicted."""
        best, real = plan["recommended"], self.capped(plan)
        return [
            peak
            for peak in ("allocated", "reserved")
            if best[f"peak_{peak}_bytes"] != real.get(peak)
        ]

    def relative_times(self) -> list[RelativeTime]:
        times = []
        for plan in self.plans:
            plain = self.plain(plan)
            if plain is None or "step_seconds" not in plain:
                continue
            measured = [(plan["recommended"], self.capped(plan))] + [
                (other, self.measured.get(f"{plan['name']}/other {other['in_words']}", {}))
                for other in plan["others"]
            ]
            times += [
                RelativeTime(
                    plan["name"],
                    candidate["in_words"],
                    candidate["relative_time"],
                    line["step_seconds"] / plain["step_seconds"],
                )
                for candidate, line in measured
                if "step_seconds" in line and candidate["relative_time"] is not None
            ]
        return times

    def ranked_pairs(self) -> tuple[int, int]:
        """Of pairs of plans of one job that differ in time: how many are in the right order."""
        by_job: dict[str, list[RelativeTime]] = {}
        for time in self.relative_times():
            # The plain job is one more plan, of which everything is known.
            of_job = by_job.setdefault(time.job, [RelativeTime(time.job, "plain", 1.0, 1.0)])
            of_job.append(time)
        pairs = [
            (one, other)
            for times in by_job.values()
            for one, other in itertools.combinations(times, 2)
            if max(one.measured, other.measured) > DIFFERENCE * min(one.measured, other.measured)
        ]
        right = [
            (one.measured < other.measured) == (one.predicted < other.predicted)
            for one, other in pairs
        ]
        return sum(right), len(right)

    def largest_batches(self) -> list[LargestBatch]:
        found = []
        for plan in self.plans:
            lines = [
                line
                for name, line in self.measured.items()
                if name.startswith(f"{plan['name']}/largest ")
            ]
            if not lines or not plan["largest_batch"]:
                continue
            ended = [line["batch"] for line in lines if line["outcome"] == "ended"]
            failed = [line["batch"] for line in lines if line["outcome"] == "out-of-memory"]
            found.append(
                LargestBatch(
                    plan["name"],
                    plan["largest_batch"]["batch"],
                    max(ended, default=0),
                    min(failed, default=None),
                )
            )
        return found


def _lines(path: Path) -> list[Line]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def main() -> None:
    results = Results(Path(sys.argv[1])) if len(sys.argv) > 1 else Results()
    for plan in results.plans:
        real, plain = results.capped(plan), results.plain(plan) or {}
        different = results.different_peaks(plan) if real["outcome"] == "ended" else []
        time = real.get("step_seconds", 0) / plain.get("step_seconds", float("inf"))
        said = plan["recommended"]["relative_time"]
        peaks = f"other {', '.join(different)}" if different else "same peaks"
        print(
            f"{plan['name']:30} {plan['recommended']['in_words'][:46]:46} {real['outcome']:13}"
            f" {peaks:25} time {said} predicted, {time:.2f} measured"
        )
        for peak in different:
            predicted = plan["recommended"][f"peak_{peak}_bytes"]
            print(f"    {peak}: {predicted} predicted, {real[peak]} measured")
    ended = sum(results.capped(plan)["outcome"] == "ended" for plan in results.plans)
    same = sum(not results.different_peaks(plan) for plan in results.plans)
    print(f"{len(results.plans)} plans, {ended} ended, {same} with both peaks as predicted")
    times = results.relative_times()
    if times:
        errors = [abs(time.error) for time in times]
        right, pairs = results.ranked_pairs()
        print(f"{len(times)} relative times, median error {statistics.median(errors):.1%}")
        print(f"{sum(error <= 0.1 for error in errors)} within 10 %, {right} of {pairs} in order")
        for each in sorted(times, key=lambda time: -abs(time.error))[:12]:
            print(f"    {each.job} {each.plan}: {each.predicted} for {each.measured:.2f}")
    for batch in results.largest_batches():
        print(f"{batch}")
    for name, line in results.measured.items():
        if "/rival " in name:
            print(name, {key: line.get(key) for key in RIVAL_FIELDS})


RIVAL_FIELDS = (
    "outcome",
    "batch",
    "known_after_seconds",
    "step_seconds",
    "samples_per_second",
)

if __name__ == "__main__":
    main()
