"""Checks of PyTorch's own that hold in every script that works, and would fail on a card of zeros.

`torch.linalg.eig` asks the card whether all values are finite before it starts. Nothing is
computed here, so the answer reads as "no"; on a real card, where the script goes on, it is "yes".
"""

from __future__ import annotations

from typing import Any

from .kernels import put_in_front
from .readbacks import Readbacks
from .report import RECORD

_CHECKED = {"linalg_eig": "torch.linalg.eig: the matrix is assumed to have no infinities or NaNs"}
"""Operators that check their arguments on the card, with what is assumed about those."""


class ArgumentChecks:
    """Lets the checks inside some operators succeed."""

    def __init__(self, torch: Any, readbacks: Readbacks) -> None:
        self._torch = torch
        self._readbacks = readbacks

    def install(self) -> None:
        for operator, assumption in _CHECKED.items():
            put_in_front(self._torch, operator, "CUDA", self._passing(assumption))

    def _passing(self, assumption: str) -> Any:
        def passing(original: Any, *arguments: Any, **options: Any) -> Any:
            RECORD.assume(assumption)
            # The first question is whether the arguments are in order, the second whether the work
            # has failed.
            with self._readbacks.answering(0, checks=1):
                return original(*arguments, **options)

        return passing
