"""PyTorch's own argument checks, which pass in every working script but would fail here.

`torch.linalg.eig` first asks the card whether all values are finite. Nothing is computed in a
rehearsal, so it would read "no"; on a real card, where the script works, it reads "yes".
"""

from __future__ import annotations

from typing import Any

from ..kernels import put_in_front
from ..report import RECORD
from .readbacks import Readbacks

_CHECKED = {"linalg_eig": "torch.linalg.eig: the matrix is assumed to have no infinities or NaNs"}
"""Operators that check their arguments on the card, and what is assumed about the arguments."""


class ArgumentChecks:
    """Makes the checks inside these operators succeed."""

    def __init__(self, torch: Any, readbacks: Readbacks) -> None:
        self._torch = torch
        self._readbacks = readbacks

    def install(self) -> None:
        for operator, assumption in _CHECKED.items():
            put_in_front(self._torch, operator, "CUDA", self._passing(assumption))

    def _passing(self, assumption: str) -> Any:
        def passing(original: Any, *arguments: Any, **options: Any) -> Any:
            RECORD.assume(assumption)
            # The operator reads two truth values: whether its arguments are valid (yes), then
            # whether the computation failed (no).
            with self._readbacks.answering(0, checks=1):
                return original(*arguments, **options)

        return passing
