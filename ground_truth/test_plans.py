"""What `ghostgpu plan` recommended for an H200 with little memory, as it ran on a real one.

Recorded by `harness/plans`: nothing is rehearsed here. `h200/plans/README.md` says how.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "harness" / "plans"))

from results import (  # type: ignore[import-not-found]
    SHARE,
    LargestBatch,
    Line,
    Results,
)

RESULTS = Results()
STEPS = 20

#: By which share of the predicted one a peak differs at most. Why is not known; the
#: reserved bytes are the predicted ones in all but two.
DIFFERS: dict[str, float] = {
    "gpt2 on 16 GiB": 0.001,
    "gpt2 on 8 GiB": 0.001,
    "bert on 11 GiB": 0.001,
    "gpt2 on 11 GiB": 0.001,
    "t5 on 11 GiB": 0.001,
    "speech on 11 GiB": 0.015,
    "vit on 8 GiB": 0.001,
    "llama on 8 GiB": 0.001,
    "t5 on 8 GiB": 0.001,
    "speech on 8 GiB": 0.001,
    "llama on 16 GiB": 0.001,
    "t5 on 16 GiB": 0.001,
    "vit on 24 GiB": 0.015,
    "bert on 24 GiB": 0.001,
    "gpt2 on 24 GiB": 0.001,
    "t5 on 24 GiB": 0.001,
    "speech on 16 GiB": 0.001,
}


def test_there_are_enough_jobs_and_all_amounts_of_memory() -> None:
    assert len(RESULTS.plans) >= 40
    assert {plan["gib"] for plan in RESULTS.plans} == {8, 11, 16, 24}
    assert len({plan["script"] + plan["arguments"][0] for plan in RESULTS.plans}) >= 10


@pytest.mark.parametrize("plan", RESULTS.plans, ids=lambda plan: plan["name"])
def test_a_plan_trains_within_the_memory_it_was_made_for(plan: Line) -> None:
    real = RESULTS.capped(plan)
    assert real["outcome"] == "ended", real.get("text")
    assert real["steps"] == STEPS
    # Without tricks the job is too large for this memory: otherwise it would need no plan.
    assert plan["as_it_is"]["peak_reserved_bytes"] > real["limit"]


@pytest.mark.parametrize("plan", RESULTS.plans, ids=lambda plan: plan["name"])
def test_its_peaks_are_the_predicted_ones(plan: Line) -> None:
    real, best = RESULTS.capped(plan), plan["recommended"]
    share = DIFFERS.get(plan["name"], 0.0)
    for peak in ("allocated", "reserved"):
        predicted = best[f"peak_{peak}_bytes"]
        assert abs(real[peak] - predicted) <= share * predicted, peak


def test_relative_times_are_close_and_in_order() -> None:
    times = RESULTS.relative_times()
    assert len(times) >= 60
    assert statistics.median(abs(time.error) for time in times) <= 0.1
    right, pairs = RESULTS.ranked_pairs()
    assert right >= 0.85 * pairs


#: Segments lie elsewhere on the card, and one of 246 MiB finds no place.
TOO_LARGE = {"diffusion on 8 GiB"}


@pytest.mark.parametrize("batch", RESULTS.largest_batches(), ids=lambda batch: batch.pair)
def test_the_largest_batch_trains_and_a_slightly_larger_one_does_not(batch: LargestBatch) -> None:
    assert (batch.ended < batch.said) == (batch.pair in TOO_LARGE)
    # One sample more, or 3 %, runs out of memory: the batch that was said is not timid.
    assert batch.too_large is not None
    assert batch.too_large <= int(batch.said / SHARE) + 1


def test_enough_largest_batches_were_run() -> None:
    assert len(RESULTS.largest_batches()) >= 20
