"""Cuts batches to fewer tokens as they leave a `DataLoader`.

Saves: activations, in proportion; attention without flash kernels by the square.
Costs: what stands behind the cut is not trained on.
Numbers: training.
Conflicts: none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .hooks import Hooks
from .sequences import cut, sequence_length
from .trick import Trick


class ShorterSequences(Trick):
    """Cuts every batch whose samples are longer."""

    name = "shorter-sequences"

    def __init__(self, torch: Any, hooks: Hooks, options: Mapping[str, str]) -> None:
        super().__init__(torch, hooks, options)
        self._tokens = int(options["tokens"])
        self._longest = 0

    def install(self) -> None:
        self.hooks.around_batches.append(lambda loader, batches: _Cut(self, batches))

    def cut(self, batch: Any) -> Any:
        """The batch, cut if its samples are longer."""
        length = sequence_length(self.torch, batch)
        if length is None or length <= self._tokens:
            return batch
        self._longest = max(self._longest, length)
        return cut(self.torch, batch, length, self._tokens)

    def did(self) -> str | None:
        if not self._longest:
            return None
        return f"sequences of up to {self._longest} tokens cut to {self._tokens}"

    def nothing_because(self) -> str:
        return f"no DataLoader gave rows of more than {self._tokens} tokens"


class _Cut:
    """Wraps the iterator of a loader and cuts its batches."""

    def __init__(self, trick: ShorterSequences, batches: Any) -> None:
        self._trick = trick
        self._batches = batches

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return self._trick.cut(next(self._batches))

    def __getattr__(self, name: str) -> Any:
        # Frameworks use attributes of PyTorch's iterator beyond the iterator protocol.
        return getattr(self._batches, name)
