"""Which batches of a pass a script gets."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

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


def test_an_epoch_that_is_only_begun_gives_one_batch() -> None:
    assert batches_of_a_hurried_pass(shortens=True) == 1


@pytest.mark.parametrize("lockstep", [False, True])
def test_passes_that_must_be_whole_are_whole_in_such_an_epoch_too(lockstep: bool) -> None:
    assert batches_of_a_hurried_pass(shortens=lockstep, in_lockstep=lockstep) == 5
