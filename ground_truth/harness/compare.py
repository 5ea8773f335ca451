"""Compares two sets of results case by case, and holds them against the list of known deviations.

    python ground_truth/harness/compare.py ground_truth/h200 virtual-results

A case is equal when every step's peak allocated and peak reserved bytes are, it ended the same
way, and needed the same number of retries. Exit code 1: a case that should be equal is not, or a
listed deviation got worse.
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from archive import read_events, read_results
from deviations import Deviation, read_deviations

#: These two decide whether a case is equal. The others are shown.
EXACT_FIELDS = ("peak_allocated_bytes", "peak_reserved_bytes")


@dataclass
class Comparison:
    case: str
    #: Why the case is not equal, most important first; empty when it is.
    differences: list[str] = field(default_factory=list)
    #: The largest error of each exact field over all steps, in bytes (virtual minus real).
    error_bytes: dict[str, int] = field(default_factory=dict)
    allocations: int = 0
    relative_error: float = 0.0
    events: str = ""
    #: What NVML says the process uses, context and libraries included (virtual minus real).
    on_card_error_bytes: int | None = None
    #: The words or numbers of the error differ.
    has_other_text: bool = False
    #: The measured case itself failed, so there is nothing to compare with.
    is_unmeasured: bool = False

    @property
    def is_equal(self) -> bool:
        return not self.differences and not self.is_unmeasured


def compare_case(
    name: str,
    real: dict[str, Any],
    virtual: dict[str, Any] | None,
    real_events: dict[str, Any] | None = None,
    virtual_events: dict[str, Any] | None = None,
) -> Comparison:
    result = Comparison(name)
    if real["outcome"] == "failed":
        result.is_unmeasured = True
        return result
    if virtual is None:
        result.differences.append("was not run")
        return result
    if real["outcome"] != virtual["outcome"]:
        reason = (virtual.get("failure") or "").strip().splitlines()
        ending = f": {reason[-1]}" if reason else ""
        result.differences.append(f"{virtual['outcome']} instead of {real['outcome']}{ending}")
    pairs = list(zip(_readings(real), _readings(virtual)))
    for key in EXACT_FIELDS:
        errors = [(v[key] or 0) - (r[key] or 0) for r, v in pairs]
        largest = max(errors, key=abs, default=0)
        result.error_bytes[key] = largest
        if largest:
            step = next(index for index, error in enumerate(errors) if error) + 1
            result.differences.append(f"{key} {largest:+,} (first in step {step})")
            whole = max(r[key] for r, _ in pairs)
            result.relative_error = max(result.relative_error, abs(largest) / whole)
    if len(real["steps"]) != len(virtual["steps"]):
        result.differences.append(f"{len(virtual['steps'])} steps instead of {len(real['steps'])}")
    if pairs:
        last_real, last_virtual = pairs[-1]
        result.allocations = (last_virtual["allocations"] or 0) - (last_real["allocations"] or 0)
        if last_real["retries"] != last_virtual["retries"]:
            result.differences.append(
                f"{last_virtual['retries']} retries instead of {last_real['retries']}"
            )
        ours, theirs = last_virtual.get("process_bytes"), last_real.get("process_bytes")
        if ours is not None and theirs is not None:
            result.on_card_error_bytes = ours - theirs
    if real["oom"] and virtual["oom"]:
        result.has_other_text = own_words(real["oom"]["text"]) != own_words(virtual["oom"]["text"])
    result.events = compare_events(real_events, virtual_events)
    return result


def own_words(text: str) -> str:
    """The error's text without what it says about other processes and what they leave free."""
    text = re.sub(r"Process \d+ has \S+ \S+ memory in use\. ", "", text)
    text = re.sub(r"Free \(according to CUDA\): \S+ \S+", "Free (according to CUDA): some", text)
    return re.sub(r"of which \S+ \S+ is free", "of which some is free", text)


def _readings(result: dict[str, Any]) -> list[dict[str, Any]]:
    final = result.get("final")
    return [*result["steps"], *([final] if final else [])]


def compare_events(real: dict[str, Any] | None, virtual: dict[str, Any] | None) -> str:
    """Where the two histories part; empty when they do not or one is missing."""
    if real is None or virtual is None:
        return ""
    theirs, ours = in_settled_order(real), in_settled_order(virtual)
    for index, (expected, found) in enumerate(zip(theirs, ours)):
        if expected != found:
            wanted = f"{expected[0]} {expected[1]:,}"
            return f"event {index}: {found[0]} {found[1]:,} instead of {wanted}"
    if len(theirs) != len(ours):
        return f"{len(ours)} events instead of {len(theirs)}"
    if (real["actions"], real["sizes"]) != (virtual["actions"], virtual["sizes"]):
        # The digests follow the raw order and cannot be compared then.
        return ""
    digests = zip(real["placement_digests"], virtual["placement_digests"])
    for index, (r_digest, v_digest) in enumerate(digests):
        if r_digest != v_digest:
            return f"other placement from event {index * 256}"
    return ""


def in_settled_order(events: dict[str, Any]) -> list[tuple[str, int]]:
    """The events with each run of frees sorted.

    Autocast gives its copies of the weights back in the order of a hash table over host addresses,
    another one in every process. The blocks that are free afterwards are the same.
    """
    settled: list[tuple[str, int]] = []
    frees: list[tuple[str, int]] = []
    for event in zip(events["actions"], events["sizes"]):
        if event[0] in "rf":
            frees.append(event)
            continue
        settled += sorted(frees)
        settled.append(event)
        frees = []
    return settled + sorted(frees)


def compare_folders(real: Path, virtual: Path) -> list[Comparison]:
    real_results, virtual_results = read_results(real), read_results(virtual)
    return [
        compare_case(
            name,
            result,
            virtual_results.get(name),
            read_events(real, name),
            read_events(virtual, name),
        )
        for name, result in real_results.items()
    ]


def verdict(comparison: Comparison, known: Deviation | None) -> str | None:
    """What is wrong with this outcome, given what is already known; None when nothing is."""
    if comparison.is_unmeasured:
        return None
    if known is None:
        if comparison.is_equal:
            return None
        return f"{comparison.case}: {'; '.join(comparison.differences)}"
    for key, limit in known.limits().items():
        error = abs(comparison.error_bytes.get(key, 0))
        if error > limit:
            return f"{comparison.case}: {key} is off by {error:,}, the list allows {limit:,}"
    endings = [d for d in comparison.differences if not d.startswith(EXACT_FIELDS)]
    if endings and not known.allows_other_ending:
        return f"{comparison.case}: {'; '.join(endings)}"
    return None


def report(comparisons: list[Comparison]) -> str:
    lines = []
    for comparison in comparisons:
        if comparison.is_unmeasured:
            lines.append(f"unmeasured  {comparison.case}")
            continue
        mark = "equal" if comparison.is_equal else "DIFFERENT"
        parts = list(comparison.differences)
        if comparison.allocations:
            parts.append(f"{comparison.allocations:+} allocations")
        if comparison.events:
            parts.append(comparison.events)
        if comparison.on_card_error_bytes:
            parts.append(f"on card {comparison.on_card_error_bytes:+,}")
        if comparison.has_other_text:
            parts.append("other words in the error")
        lines.append(f"{mark:10}  {comparison.case:48}  {'; '.join(parts)}")
    measured = [c for c in comparisons if not c.is_unmeasured]
    equal = sum(c.is_equal for c in measured)
    identical = sum(c.is_equal and not c.events for c in measured)
    lines.append(f"{equal} of {len(measured)} equal, {identical} of them event by event")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("real", type=Path)
    parser.add_argument("virtual", type=Path)
    parser.add_argument("--only-run", action="store_true", help="skip cases that were not run")
    parser.add_argument(
        "--known", type=Path, default=Path(__file__).parents[1] / "known_deviations.toml"
    )
    options = parser.parse_args()
    comparisons = compare_folders(options.real, options.virtual)
    if options.only_run:
        comparisons = [c for c in comparisons if c.differences != ["was not run"]]
    print(report(comparisons))
    known = read_deviations(options.known)
    problems = [p for c in comparisons if (p := verdict(c, known.get(c.case)))]
    better = [c.case for c in comparisons if c.is_equal and c.case in known]
    for name in better:
        print(f"{name} is equal now: take it off the list of known deviations")
    for problem in problems:
        print(f"not allowed: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
