"""The choice of sentinels, and of the cases that may be replayed again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "harness"))

from archive import read_results
from deviations import Deviation, read_deviations
from repetition import NotDeterministic, further_attempts, read_not_deterministic
from scope import one_per_family
from sentinels import options, sentinels

MEASURED = {n: r for n, r in read_results(HERE / "h200").items() if r["outcome"] != "failed"}
KNOWN = read_deviations(HERE / "known_deviations.toml")
CHOSEN = sentinels(MEASURED, KNOWN)


def result(family: str, allocations: int, **definition: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {"precision": "fp32", "optimizer": "adamw", "settings": ""}
    plain |= {"channels_last": False, "cap_gib": None, "accumulate": 1, **definition}
    steps = [{"allocations": allocations}]
    return {"family": family, "outcome": "finished", "definition": plain, "steps": steps}


def test_every_family_every_reason_and_every_way_to_end_has_a_sentinel() -> None:
    families = {result["family"] for result in MEASURED.values()}
    assert {MEASURED[name]["family"] for name in CHOSEN} == families
    reasons = {deviation.reason for deviation in KNOWN.values()}
    assert {KNOWN[name].reason for name in CHOSEN if name in KNOWN} == reasons
    endings = {(it["family"], it["outcome"]) for it in MEASURED.values()}
    assert {(MEASURED[name]["family"], MEASURED[name]["outcome"]) for name in CHOSEN} == endings


def test_there_are_few_enough_for_every_run() -> None:
    assert 60 <= len(CHOSEN) <= 100


def test_the_cheapest_case_stands_for_those_like_it() -> None:
    cases = {"large": result("vision", 900), "small": result("vision", 100)}
    assert sentinels(cases, {}) == ["small"]


@pytest.mark.parametrize(
    "other",
    [
        result("text", 900),
        result("vision", 900, precision="bf16"),
        result("vision", 900, optimizer="sgd"),
        result("vision", 900, settings="expandable_segments:True"),
        result("vision", 900, channels_last=True),
        result("vision", 900, cap_gib=2.0),
        result("vision", 900, accumulate=4),
        {**result("vision", 900), "outcome": "oom"},
    ],
)
def test_a_case_with_something_of_its_own_is_a_sentinel_too(other: dict[str, Any]) -> None:
    assert sentinels({"plain": result("vision", 100), "other": other}, {}) == ["plain", "other"]


def test_a_new_reason_of_deviation_is_a_sentinel_too() -> None:
    cases = {"plain": result("vision", 100), "other": result("vision", 900)}
    known = {"other": Deviation("other", 1, 0, "a new reason")}
    assert sentinels(cases, known) == ["plain", "other"]


def test_options_of_the_allocator_are_told_apart_by_name() -> None:
    assert options("a:1, b:[256:1,>:8],c:True") == ["a", "b", "c"]
    assert options("") == []


def test_each_family_is_stood_for_by_its_cheapest_case() -> None:
    cases = {"a": result("x", 3), "b": result("x", 2), "c": result("y", 9)}
    assert one_per_family(list(cases), cases) == ["b", "c"]


def test_only_listed_cases_are_replayed_again() -> None:
    listed = [NotDeterministic(("fp16",), ("named",), 2, "a reason")]
    assert further_attempts("any", result("x", 1, precision="fp16"), listed) == 2
    assert further_attempts("named", result("x", 1), listed) == 2
    assert further_attempts("any", result("x", 1), listed) == 0


def test_every_entry_of_the_list_has_a_reason_and_names_measured_cases() -> None:
    for entry in read_not_deterministic(HERE / "not_deterministic.toml"):
        assert len(entry.reason.split()) >= 3
        assert set(entry.cases) <= set(MEASURED)
        assert any(entry.covers(name, result) for name, result in MEASURED.items())
