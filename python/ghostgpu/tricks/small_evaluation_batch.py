"""Smaller batches for loaders that are iterated for evaluation.

Saves: activations of evaluation, in proportion.
Costs: evaluation takes more, smaller steps.
Numbers: rounding; averages over batches are weighted as the script weighs them.
Conflicts: evaluation-chunks.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

from .evaluating import Evaluating
from .faults import quietly
from .hooks import Hooks
from .loader_batch import set_batch, why_not_settable
from .trick import Trick
from .user_code import users_line


class SmallEvaluationBatch(Trick):
    """Sets the batch size when the script begins to iterate such a loader."""

    name = "small-evaluation-batch"

    def __init__(self, torch: Any, hooks: Hooks, options: Mapping[str, str]) -> None:
        super().__init__(torch, hooks, options)
        self._batch = int(options["batch"])
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
        if batch > self._batch:
            self._places[users_line()] = batch
            set_batch(loader, self._batch)

    def nothing_because(self) -> str:
        return f"no DataLoader that evaluates has more than {self._batch} samples in a batch"

    def did(self) -> str | None:
        words = [f"{place} (instead of {batch})" for place, batch in self._places.items()]
        return f"a batch of {self._batch} at {', '.join(words[:3])}" if words else None
