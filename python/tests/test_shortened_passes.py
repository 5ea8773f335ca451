"""Which batches of a pass a script gets."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ghostgpu.agent.coverage.card_memory import CardMemory
from ghostgpu.agent.coverage.extent import THOROUGH
from ghostgpu.agent.coverage.passes import Place, ShortenedPass

torch = pytest.importorskip("torch")


def batches_of_a_hurried_pass(*, shortens: bool, in_lockstep: bool = False) -> int:
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
        progress=progress,
        shortens=shortens,
        in_lockstep=lambda: in_lockstep,
        note_handed_on=lambda under_way: None,
        note_pass_end=lambda place, ended, is_complete: None,
    )
    loader = torch.utils.data.DataLoader(torch.arange(10), batch_size=2)
    place = Place(("train.py:1", True))
    return len(list(ShortenedPass(coverage, loader, iter(loader), place)))


def batches_of_varying_sizes(seconds_each: float, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many of forty batches of different sizes a script gets that takes so long for each."""
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
        progress=progress,
        shortens=True,
        is_at_last_batch=False,
        in_lockstep=lambda: False,
        most_without_step=256,
        may_scan=lambda place, can_jump: True,
        note_level=lambda place: None,
        note_handed_on=lambda under_way: None,
        note_pass_end=lambda place, ended, is_complete: None,
    )
    # A few sizes, so that not each is new.
    data = [torch.zeros(1 + index % 2) for index in range(40)]
    loader = torch.utils.data.DataLoader(data, batch_size=None)
    taken = 0
    for _ in ShortenedPass(coverage, loader, iter(loader), Place(("train.py:1", False))):
        taken += 1
        clock[0] += seconds_each
        progress.steps += 1
    return taken


def test_batches_of_different_sizes_are_all_handed_on_where_there_is_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert batches_of_varying_sizes(0.1, monkeypatch) == 40
    # The first three and the last two.
    assert batches_of_varying_sizes(1.0, monkeypatch) == 5


def test_an_epoch_that_is_only_begun_gives_one_batch() -> None:
    assert batches_of_a_hurried_pass(shortens=True) == 1


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
