"""Memory on the card between batches: whether a pass uses the card, and whether memory grows."""

from __future__ import annotations

from typing import Any

RELEVANT_SHARE = 0.0025
"""If growth up to the end of a pass would add less than this share of the peak, the pass need not
be rehearsed to its end."""


class CardMemory:
    """The allocator's figures each time the script takes a batch."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._levels: list[int] = []
        self._peak = 0
        self._allocations_at_first: int | None = None
        self._allocations = 0

    def look(self) -> None:
        """Read the current figures."""
        cuda = self._torch.cuda
        if not cuda.is_initialized():
            self._allocations_at_first = self._allocations_at_first or 0
            return
        statistics = self._torch._C._cuda_memoryStats(cuda.current_device())
        self._levels = [*self._levels[-3:], statistics["allocated_bytes"]["all"]["current"]]
        self._peak = statistics["allocated_bytes"]["all"]["peak"]
        self._allocations = statistics["allocation"]["all"]["allocated"]
        if self._allocations_at_first is None:
            self._allocations_at_first = self._allocations

    @property
    def was_used(self) -> bool:
        """Whether anything was allocated since the first `look`."""
        return self._allocations > (self._allocations_at_first or 0)

    @property
    def growth(self) -> int:
        """By how much the last batch raised memory, if the two before it did too; otherwise 0."""
        if len(self._levels) < 4:
            return 0
        rises = [after - before for before, after in zip(self._levels, self._levels[1:])]
        return rises[-1] if min(rises[-2:]) > 0 else 0

    @property
    def is_level(self) -> bool:
        """Whether the last two batches left nothing behind."""
        return len(self._levels) == 4 and max(self._levels[-2:]) <= self._levels[-3]

    def grows_relevantly(self, batches_left: int | None) -> bool:
        """Whether what each batch leaves on the card adds up to a relevant amount."""
        if batches_left is None:
            return self.growth > 0
        return self.growth * batches_left > RELEVANT_SHARE * self._peak
