"""Results whose shape depends on values: assumes a shape, and says so.

The card holds no values, so `nonzero` would find nothing and a boolean mask would select nothing.
Instead the largest result is assumed: every element is selected, every element is unique. The real
kernels still run, so that their allocations are the real ones; only the one number that they read
back from the card, the length of the result, is given by us through the stand-in library.

Values that are known after all, because they came from the host (see `known_values`), are used.
"""

from __future__ import annotations

from typing import Any, Callable

from . import preload
from .guard import quietly
from .kernels import put_in_front
from .readbacks import Readbacks
from .report import RECORD
from .stacks import users_line

INT32_BYTES = 4
INT64_BYTES = 8


class ShapeAssumptions:
    """Decides the lengths of results that depend on values."""

    def __init__(self, torch: Any, answer: Callable[[int, int], None]) -> None:
        self._torch = torch
        self._answer = answer

    def install(self) -> None:
        """Stand in front of the CUDA kernels concerned."""
        for operator, replacement in (
            ("nonzero", self._nonzero),
            ("_unique2", self._unique("unique()")),
            ("unique_consecutive", self._unique("unique_consecutive()")),
            ("repeat_interleave.Tensor", self._repeat_interleave),
            ("bincount", self._bincount),
        ):
            put_in_front(self._torch, operator, "CUDA", replacement)

    def _nonzero(self, original: Any, tensor: Any) -> Any:
        count = tensor.numel()
        if count:
            self._assume(
                f"nonzero() or a boolean mask, {_shape(tensor)}: assumed that all {count} "
                "elements are selected (the largest case)"
            )
            self._answer(count, INT32_BYTES)
        return original(tensor)

    def _unique(self, name: str) -> Callable[..., Any]:
        def unique(original: Any, tensor: Any, *arguments: Any, **options: Any) -> Any:
            count = tensor.numel()
            if count:
                self._assume(
                    f"{name}, {_shape(tensor)}: assumed that all {count} elements are different "
                    "(the largest case)"
                )
                self._answer(count, INT64_BYTES)
            return original(tensor, *arguments, **options)

        return unique

    def _repeat_interleave(self, original: Any, repeats: Any, **options: Any) -> Any:
        if options.get("output_size") is None and repeats.numel():
            self._assume(
                f"repeat_interleave(), {_shape(repeats)} of repeats: assumed that each is 1"
            )
            self._answer(repeats.numel(), INT64_BYTES)
        return original(repeats, **options)

    def _bincount(self, original: Any, tensor: Any, *arguments: Any, **options: Any) -> Any:
        # The largest value reads as 0, so that the result has `minlength` bins, or one.
        self._assume(f"bincount(), {_shape(tensor)}: assumed that no value exceeds minlength - 1")
        return original(tensor, *arguments, **options)

    @quietly
    def _assume(self, sentence: str) -> None:
        RECORD.assume(f"{users_line()}: {sentence}")


def _shape(tensor: Any) -> str:
    return "x".join(str(size) for size in tensor.shape) or "one value"


def install_assumptions(torch: Any, ending: Any) -> None:
    """Install everything that deals with values read from the card."""
    readbacks = Readbacks(torch)
    quietly(readbacks.install)()
    ending.add_last_act(readbacks.tell)
    answer = preload.readback_answerer()
    if answer is None:
        RECORD.note("this library cannot answer readbacks: value-dependent shapes come out empty")
        return
    ShapeAssumptions(torch, answer).install()
