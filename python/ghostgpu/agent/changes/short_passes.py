"""Short passes over the training data, so that the script comes to its evaluation soon.

A script that fails while it evaluates is of no use stopped after a few steps. Here each pass over a
training loader ends after a few batches, and the script is stopped where it would go on training
after it has evaluated.
"""

from __future__ import annotations

from typing import Any

from ..report import RECORD
from ..steps import RehearsalComplete
from .change import Change
from .evaluating import Evaluating
from .hooks import Hooks

_BATCHES = 3
"""As many steps as other rehearsals have."""

_MOST_PASSES = 10
"""A script that evaluates without a loader is stopped after as many."""


class ShortPasses(Change):
    """Ends passes early; says nothing of itself, since it is no advice."""

    def __init__(self, torch: Any, hooks: Hooks) -> None:
        super().__init__(torch, hooks)
        self._is_evaluating = Evaluating(torch, hooks)
        self._has_evaluated = False
        self._passes = 0

    def install(self) -> None:
        self.hooks.around_batches.append(self._batches)

    def _batches(self, loader: Any, batches: Any) -> Any:
        if self._is_evaluating():
            self._has_evaluated = RECORD.report.steps > 0
            return batches
        self._passes += 1
        if self._has_evaluated or self._passes > _MOST_PASSES:
            RECORD.report.stopped_by_step_limit = True
            raise RehearsalComplete
        return _FirstBatches(batches)

    def did(self) -> None:
        return None


class _FirstBatches:
    """The first batches of a pass."""

    def __init__(self, batches: Any) -> None:
        self._batches = batches
        self._left = _BATCHES

    def __iter__(self) -> _FirstBatches:
        return self

    def __next__(self) -> Any:
        if self._left == 0:
            raise StopIteration
        self._left -= 1
        return next(self._batches)

    def __getattr__(self, name: str) -> Any:
        # PyTorch's own iterator has more to it than the protocol, and frameworks use that.
        return getattr(self._batches, name)
