"""Which batches of a pass a script gets."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from ghostgpu.agent.coverage.card_memory import CardMemory
from ghostgpu.agent.coverage.extent import THOROUGH
from ghostgpu.agent.coverage.passes import Place, ShortenedPass

torch = pytest.importorskip("torch")


def batches_of_a_hurried_pass(
    *,
    shortens: bool,
    in_lockstep: bool = False,
    is_evaluation: bool = True,
    batches_per_step: int = 3,
) -> int:
    """How many of five batches a script gets in an epoch in which nothing new is expected."""
    progress = SimpleNamespace(
        begin=lambda: None,
        is_in_a_hurry=True,
        steps=9,
        note_new=lambda what: None,
        extent=THOROUGH,
    )
    coverage: Any = SimpleNamespace(
        torch=torch,
        clock=time.monotonic,
        progress=progress,
        shortens=shortens,
        in_lockstep=lambda: in_lockstep,
        batches_per_step=batches_per_step,
        note_handed_on=lambda under_way: None,
        note_pass_end=lambda place, ended, is_complete: None,
    )
    loader = torch.utils.data.DataLoader(torch.arange(10), batch_size=2)
    place = Place(("train.py:1", is_evaluation))
    return len(list(ShortenedPass(coverage, loader, iter(loader), place)))


class Stream(torch.utils.data.IterableDataset):  # type: ignore[misc, name-defined]
    """Samples without a known number."""

    def __init__(self, samples: list[Any]) -> None:
        self.samples = samples

    def __iter__(self) -> Any:
        return iter(self.samples)


def indices_handed_on(
    monkeypatch: pytest.MonkeyPatch,
    *,
    seconds_each: float,
    sizes: int = 1,
    batches: int = 40,
    batches_per_step: int = 1,
    drawn_ahead: int = 0,
    has_length: bool = True,
) -> list[int]:
    """Which batches of a pass a script gets that takes so much CPU time for each."""
    clock = [100.0]
    monkeypatch.setattr("ghostgpu.agent.coverage.passes.time.process_time", lambda: clock[0])
    monkeypatch.setattr(CardMemory, "was_used", True)
    monkeypatch.setattr(CardMemory, "look", lambda self: None)
    monkeypatch.setattr(CardMemory, "grows_relevantly", lambda self, left: False)
    progress = SimpleNamespace(
        begin=lambda: None,
        is_in_a_hurry=False,
        is_out_of_time=False,
        budget_seconds=60.0,
        steps=0,
        note_new=lambda what: None,
        extent=THOROUGH,
    )
    coverage: Any = SimpleNamespace(
        torch=torch,
        clock=time.monotonic,
        progress=progress,
        shortens=True,
        is_at_last_batch=False,
        in_lockstep=lambda: False,
        most_without_step=256,
        batches_per_step=batches_per_step,
        may_scan=lambda place, can_jump: True,
        note_level=lambda place: None,
        note_handed_on=lambda under_way: None,
        note_pass_end=lambda place, ended, is_complete: None,
    )
    data: Any = [torch.full((1 + index % sizes,), index) for index in range(batches)]
    loader = torch.utils.data.DataLoader(data if has_length else Stream(data), batch_size=None)
    taken = []
    for batch in ShortenedPass(coverage, loader, iter(loader), Place(("train.py:1", False))):
        taken.append(int(batch[0]))
        used = len(taken) - drawn_ahead
        if used > 0:
            clock[0] += seconds_each
            progress.steps += used % batches_per_step == 0
    return taken


def test_batches_of_different_sizes_are_all_handed_on_where_there_is_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert len(indices_handed_on(monkeypatch, seconds_each=0.1, sizes=2)) == 40
    # The first three and the last two.
    assert indices_handed_on(monkeypatch, seconds_each=1.0, sizes=2) == [0, 1, 2, 38, 39]


def test_a_pass_that_takes_little_time_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(indices_handed_on(monkeypatch, seconds_each=0.02)) == 40
    assert indices_handed_on(monkeypatch, seconds_each=0.1) == [0, 1, 2, 38, 39]


def test_batches_that_are_drawn_ahead_do_not_make_a_pass_seem_fast(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken = indices_handed_on(monkeypatch, seconds_each=0.15, drawn_ahead=1)
    assert taken == [0, 1, 2, 3, 38, 39]


def test_a_pass_of_unknown_length_is_not_cut_for_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = indices_handed_on(monkeypatch, seconds_each=0.1, has_length=False)
    # One second of the budget of sixty.
    assert 10 <= len(taken) <= 12
    assert taken == list(range(len(taken)))


@pytest.mark.parametrize("batches", [40, 41, 42, 43])
def test_accumulation_windows_end_where_they_end_in_the_whole_pass(
    batches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = indices_handed_on(monkeypatch, seconds_each=1.0, batches=batches, batches_per_step=4)
    assert len(taken) < batches // 2
    assert len(taken) % 4 == batches % 4
    # The last batches are there, each at its place in its window.
    assert taken[-2:] == [batches - 2, batches - 1]
    assert all(place % 4 == index % 4 for place, index in enumerate(taken))


def test_an_epoch_that_is_only_begun_gives_one_batch_or_what_a_step_takes() -> None:
    assert batches_of_a_hurried_pass(shortens=True) == 1
    assert batches_of_a_hurried_pass(shortens=True, is_evaluation=False) == 3
    assert batches_of_a_hurried_pass(shortens=True, is_evaluation=False, batches_per_step=1) == 1


@pytest.mark.parametrize("lockstep", [False, True])
def test_passes_that_must_be_whole_are_whole_in_such_an_epoch_too(lockstep: bool) -> None:
    assert batches_of_a_hurried_pass(shortens=lockstep, in_lockstep=lockstep) == 5


@pytest.mark.parametrize(
    ("levels", "is_level"),
    [([1, 2, 3, 4], False), ([1, 2, 2, 2], True), ([5, 5, 4, 5], True), ([2, 2], False)],
)
def test_memory_is_level_when_two_batches_left_nothing_behind(
    levels: list[int], is_level: bool
) -> None:
    memory = CardMemory(torch)
    memory._levels = levels
    assert memory.is_level == is_level
