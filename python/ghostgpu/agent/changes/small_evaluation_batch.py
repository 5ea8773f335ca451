"""A batch of 1 for the loaders that are iterated to evaluate."""

from __future__ import annotations

import weakref
from typing import Any

from ..guard import quietly
from ..loader_size_point import set_batch, why_not_settable
from ..stacks import users_line
from .change import Change
from .evaluating import Evaluating
from .hooks import Hooks


class SmallEvaluationBatch(Change):
    """Sets the batch where the script begins to iterate such a loader."""

    def __init__(self, torch: Any, hooks: Hooks) -> None:
        super().__init__(torch, hooks)
        self._is_evaluating = Evaluating(torch, hooks)
        self._training: weakref.WeakSet[Any] = weakref.WeakSet()
        self._places: dict[str, int] = {}

    def install(self) -> None:
        self.hooks.before_loader.append(quietly(self._see))

    def _see(self, loader: Any) -> None:
        if not self._is_evaluating():
            self._training.add(loader)
            return
        if loader in self._training or why_not_settable(loader) is not None:
            return
        batch = int(loader.batch_sampler.batch_size)
        if batch > 1:
            self._places[users_line()] = batch
            set_batch(loader, 1)

    def did(self) -> str | None:
        words = [f"{place} (instead of {batch})" for place, batch in self._places.items()]
        return f"a batch of 1 at {', '.join(words[:3])}" if words else None
