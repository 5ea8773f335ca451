"""What PyTorch itself says about its operators."""

from __future__ import annotations

import functools
from typing import Any

_UNSET = ("empty", "new_empty", "resize", "set_", "_empty", "as_strided_")
"""Prefixes of operators that leave the memory of their result uninitialised."""

_COSTLY = (
    *(
        "mm",
        "matmul",
        "conv",
        "linear",
        "attention",
        "cdist",
        "einsum",
        "dot",
        "fft",
        "lstm",
        "gru",
    ),
    *("svd", "qr", "eig", "solve", "inv", "cholesky", "lu", "det", "matrix", "rnn", "kron"),
)
"""Parts of the names of operators whose work is not proportional to their inputs and results."""


class Operators:
    """Answers questions about operators by their names, whatever their overloads."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self.is_random = functools.lru_cache(maxsize=None)(self._is_random)
        self.is_pointwise = functools.lru_cache(maxsize=None)(self._is_pointwise)
        self.leaves_unset = functools.lru_cache(maxsize=None)(self._leaves_unset)
        self.is_costly = functools.lru_cache(maxsize=None)(self._is_costly)

    def _is_random(self, name: str) -> bool:
        """Whether its results depend on random numbers."""
        return self._has_tag(name, "nondeterministic_seeded")

    def _is_pointwise(self, name: str) -> bool:
        """Whether each element of its result depends only on the elements at the same place."""
        return self._has_tag(name, "pointwise")

    def _leaves_unset(self, name: str) -> bool:
        """Whether its results are not determined by its arguments."""
        return name.startswith(_UNSET)

    def _is_costly(self, name: str) -> bool:
        """Whether its time is not bounded by the size of its results."""
        return any(part in name for part in _COSTLY)

    def _has_tag(self, name: str, tag: str) -> bool:
        wanted = getattr(self._torch.Tag, tag, None)
        packet = getattr(self._torch.ops.aten, name, None)
        if wanted is None or packet is None:
            return False
        return any(wanted in getattr(packet, each).tags for each in packet.overloads())
