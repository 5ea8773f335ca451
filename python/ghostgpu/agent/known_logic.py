"""Conditions that are decided by one of their sides, whatever the other is.

A loop that writes text asks the card after each word: has every sentence come to its end, *or* is
the greatest length reached? What the model wrote is not known, the length is. `unknown | True` is
true and `unknown & False` is false; without that, such a loop would never end.
"""

from __future__ import annotations

from typing import Any

from .kernels import put_in_front
from .known_values import KnownValues

_DECIDED_BY_TRUE = ("bitwise_or.Tensor", "logical_or")
_DECIDED_BY_FALSE = ("bitwise_and.Tensor", "logical_and")


class KnownLogic:
    """Learns the results of `|` and `&` of which only one side is known."""

    def __init__(self, torch: Any, known: KnownValues) -> None:
        self._torch = torch
        self._known = known

    def install(self) -> None:
        """Stand before the kernels, and before what `known_values` has put there."""
        kinds = self._known.kinds
        for operators, decisive in ((_DECIDED_BY_TRUE, True), (_DECIDED_BY_FALSE, False)):
            for operator in operators:
                replacement = self._decided_by(decisive)
                put_in_front(self._torch, operator, "CUDA", replacement, dtypes=kinds)

    def _decided_by(self, decisive: bool) -> Any:
        def operation(original: Any, left: Any, right: Any) -> Any:
            result = original(left, right)
            if self._known.may_follow(result) and self._known.of(result) is None:
                self._known.attempt(decide, result, left, right)
            return result

        def decide(result: Any, left: Any, right: Any) -> None:
            # `3 | 1` is 3: of numbers, only zero decides.
            if decisive and result.dtype is not self._torch.bool:
                return
            for side in (left, right):
                values = self._known.of(side) if side.is_cuda else side
                if values is not None and bool((values.bool() == decisive).all()):
                    host = self._torch.full(result.shape, int(decisive), dtype=result.dtype)
                    self._known.learn(result, host)
                    return

        return operation
