"""Smaller batches from the `DataLoader` that the script trains with.

Saves: activations, in proportion.
Costs: more steps in an epoch, and noisier gradients; learning rates may have to follow.
Numbers: training. `chunking` saves the same and keeps the batch.
Conflicts: none.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

from .evaluating import Evaluating
from .hooks import Hooks
from .loader_batch import set_batch, why_not_settable
from .trick import Trick
from .user_code import users_line


class SmallerBatch(Trick):
    """Sets the batch size when the script begins to iterate the training loader."""

    name = "smaller-batch"

    def __init__(self, torch: Any, hooks: Hooks, options: Mapping[str, str]) -> None:
        super().__init__(torch, hooks, options)
        self._batch = int(options["batch"])
        self._is_evaluating = Evaluating(torch, hooks)
        self._seen: weakref.WeakSet[Any] = weakref.WeakSet()
        self._places: dict[str, int] = {}

    def install(self) -> None:
        self.hooks.before_loader.append(self._see)

    def _see(self, loader: Any) -> None:
        if self._is_evaluating() or loader in self._seen:
            return
        self._seen.add(loader)
        problem = why_not_settable(loader)
        if problem is not None:
            raise self.refused(
                f"the DataLoader at {users_line()} {problem}",
                "set the batch in the script, or use --chunks, which needs no loader",
            )
        batch = int(loader.batch_sampler.batch_size)
        if batch > self._batch:
            self._places[users_line()] = batch
            set_batch(loader, self._batch)

    def did(self) -> str | None:
        words = [f"{place} (instead of {batch})" for place, batch in self._places.items()]
        return f"a batch of {self._batch} at {', '.join(words[:3])}" if words else None

    def nothing_because(self) -> str:
        return f"no DataLoader that trains has more than {self._batch} samples in a batch"
