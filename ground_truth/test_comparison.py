"""The comparison itself: what counts as equal, and what the list of deviations allows."""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "harness"))

pytest.importorskip("torch")

from compare import compare_case, compare_events, verdict
from deviations import Deviation, read_deviations
from measure import compact


def reading(allocated: int, reserved: int, retries: int = 0) -> dict[str, Any]:
    return {
        "peak_allocated_bytes": allocated,
        "peak_reserved_bytes": reserved,
        "allocations": 10,
        "retries": retries,
        "process_bytes": reserved + 500,
    }


def result(*steps: dict[str, Any], outcome: str = "finished") -> dict[str, Any]:
    oom = {"text": "CUDA out of memory.", "after_steps": len(steps)} if outcome == "oom" else None
    return {
        "outcome": outcome,
        "steps": list(steps),
        "definition": {"alone": True},
        "oom": oom,
        "failure": None,
    }


REAL = result(reading(100, 200), reading(150, 200))


def changed(step: int, **values: int) -> dict[str, Any]:
    other = copy.deepcopy(REAL)
    other["steps"][step].update(values)
    return other


def test_equal_peaks_in_every_step_are_equal() -> None:
    assert compare_case("x", REAL, copy.deepcopy(REAL)).is_equal


def test_one_byte_in_one_step_is_a_difference() -> None:
    comparison = compare_case("x", REAL, changed(0, peak_allocated_bytes=101))
    assert not comparison.is_equal
    assert comparison.error_bytes == {"peak_allocated_bytes": 1, "peak_reserved_bytes": 0}


def test_another_number_of_retries_is_a_difference() -> None:
    assert not compare_case("x", REAL, changed(1, retries=1)).is_equal


def test_another_ending_is_a_difference() -> None:
    comparison = compare_case("x", REAL, result(reading(100, 200), outcome="oom"))
    assert comparison.differences[0].startswith("oom instead of finished")


def test_a_case_that_was_not_run_is_not_equal() -> None:
    assert verdict(compare_case("x", REAL, None), None) == "x: was not run"


def test_a_case_that_failed_on_the_real_card_is_compared_with_nothing() -> None:
    comparison = compare_case("x", result(outcome="failed"), None)
    assert comparison.is_unmeasured and verdict(comparison, None) is None


def test_other_words_in_the_error_are_noticed() -> None:
    real = result(reading(1, 2), outcome="oom")
    virtual = copy.deepcopy(real)
    virtual["oom"]["text"] += " 2.00 GiB allowed;"
    comparison = compare_case("x", real, virtual)
    assert comparison.is_equal and comparison.has_other_text


def test_what_other_processes_left_free_is_not_part_of_the_error() -> None:
    real, virtual = result(reading(1, 2), outcome="oom"), result(reading(1, 2), outcome="oom")
    real["oom"]["text"] += " of which 2.00 GiB is free. Process 77 has 4.01 GiB memory in use."
    real["oom"]["text"] += " 8.00 GiB allowed;"
    virtual["oom"]["text"] += " of which 131.04 GiB is free. 8.00 GiB allowed;"
    assert not compare_case("x", real, virtual).has_other_text


@pytest.mark.parametrize(
    ("error", "is_allowed"), [(0, True), (4, True), (5, True), (6, False), (-6, False)]
)
def test_a_listed_deviation_may_not_get_worse(error: int, is_allowed: bool) -> None:
    known = Deviation("x", allocated_bytes=0, reserved_bytes=5, reason="a reason")
    comparison = compare_case("x", REAL, changed(1, peak_reserved_bytes=200 + error))
    assert (verdict(comparison, known) is None) == is_allowed


def test_a_listed_deviation_does_not_excuse_another_ending() -> None:
    known = Deviation("x", allocated_bytes=9, reserved_bytes=9, reason="a reason")
    comparison = compare_case("x", REAL, result(reading(100, 200), outcome="oom"))
    assert "oom instead of finished" in str(verdict(comparison, known))


def event(action: str, size: int, address: int) -> dict[str, Any]:
    return {"action": action, "size": size, "addr": address}


def history(base: int, offset: int = 512) -> dict[str, Any]:
    return compact(
        [
            event("segment_alloc", 2 << 20, base),
            event("alloc", 512, base),
            event("alloc", 1024, base + offset),
            event("free_completed", 512, base),
        ]
    )


def test_histories_at_other_addresses_are_the_same() -> None:
    assert compare_events(history(0x7F0000000000), history(0x300000000)) == ""


def test_a_block_at_another_place_in_its_segment_is_noticed() -> None:
    assert compare_events(history(0), history(0, offset=4096)) == "other placement from event 0"


def test_the_order_within_a_run_of_frees_does_not_matter() -> None:
    real = {"actions": "aarfrf", "sizes": [1, 2, 1, 1, 2, 2], "placement_digests": ["x"]}
    virtual = {"actions": "aarfrf", "sizes": [1, 2, 2, 2, 1, 1], "placement_digests": ["y"]}
    assert compare_events(real, virtual) == ""


def test_the_first_event_that_differs_is_named() -> None:
    real, virtual = history(0), history(0)
    virtual["sizes"][2] = 2048
    assert compare_events(real, virtual) == "event 2: a 2,048 instead of a 1,024"


def test_the_list_of_deviations_is_read_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "known.toml"
    path.write_text('[vgg16]\nallocated_bytes = 0\nreserved_bytes = 7\nreason = "tiles"\n')
    assert read_deviations(path) == {"vgg16": Deviation("vgg16", 0, 7, "tiles")}
