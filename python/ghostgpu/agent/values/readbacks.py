"""Single values that the script, or PyTorch itself, reads from the card.

`loss.item()`, `float(x)` and `if mask.all():` all end in one kernel. The card holds no values, so
unless the value is known (`known_values`), it reads as an ordinary one (`plausible`). A script that
branches on it may take another branch than on a real card, so the report names the lines. Some of
PyTorch's own kernels read a value in the middle of their work, to learn how long their result is;
they get the answer that `data_dependent` has decided on.
"""

from __future__ import annotations

import contextlib
import math
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

from .. import kernels
from ..guard import quietly
from ..kernels import put_in_front
from ..preload import ReadbackAnswerer
from ..report import RECORD
from ..stacks import users_line, users_line_of
from . import known_calls, known_values
from .assertions import asserted
from .known_values import KnownValues
from .plausible import Plausible
from .waiting_loops import WaitingLoops

LINES_SHOWN = 5

_BETWEEN = frozenset((__file__, kernels.__file__, known_values.__file__))
"""Files of the agent that may be on the stack between a kernel and its caller."""


class Readbacks:
    """Answers every read of a single value and remembers the lines, in order of first use."""

    def __init__(
        self, torch: Any, answerer: ReadbackAnswerer, known: KnownValues, plausible: Plausible
    ) -> None:
        self._torch = torch
        self._answerer = answerer
        self._known = known
        self._plausible = plausible
        self._lines: dict[str, None] = {}
        self._drawn_lines: dict[str, None] = {}
        self._loops = WaitingLoops()
        known.on_draw = self._remember_draw
        self._prepared = threading.local()

    def install(self) -> None:
        """Put a replacement in front of the kernel that reads single values."""
        put_in_front(self._torch, "_local_scalar_dense", "CUDA", self._read)

    @contextlib.contextmanager
    def answering(self, length: int, *, checks: float = math.inf) -> Iterator[None]:
        """A context in which numbers that this thread reads are `length`.

        Truth values that it reads are checks: the first `checks` of them are true, all others
        false.
        """
        self._prepared.length = length
        self._prepared.checks = checks
        try:
            yield
        finally:
            self._prepared.length = None

    @contextlib.contextmanager
    def answering_copy(self, value: int, size_bytes: int) -> Iterator[None]:
        """A context in which this thread's first plain copy of this size reads `value`."""
        self._answerer.answer(value, size_bytes)
        try:
            yield
        finally:
            self._answerer.forget()

    def _read(self, original: Any, tensor: Any) -> Any:
        length = getattr(self._prepared, "length", None)
        values = self._known.of(tensor)
        if values is not None:
            self._answerer.answer(self._bits(values), tensor.element_size())
        elif length is None:
            self.remember_line()
            self._known.attempt(self._answer_plausibly, tensor)
        else:
            if tensor.dtype is self._torch.bool:
                length = int(self._prepared.checks > 0)
                self._prepared.checks -= 1
            self._answerer.answer(length, tensor.element_size())
        return original(tensor)

    def _answer_plausibly(self, tensor: Any) -> None:
        is_check = _is_read_by_pytorch()
        value = self._plausible.of(tensor, is_check=is_check, asserted=asserted())
        # A check for NaN is not what a loop waits for.
        if not is_check and self._known.sure_guess_of(tensor) is None:
            value = self._loops.other_value(value)
        if value:
            value = self._torch.tensor(value, dtype=tensor.dtype, device="cpu")
            self._answerer.answer(self._bits(value), tensor.element_size())

    def _bits(self, value: Any) -> int:
        """The bit pattern that the card would hold for a number."""
        return int.from_bytes(value.reshape(1).view(self._torch.uint8).tolist(), "little")

    @quietly
    def remember_line(self) -> None:
        """Remember that the current line reads unknown values."""
        self._lines.setdefault(users_line(), None)

    def _remember_draw(self) -> None:
        quietly(self._drawn_lines.setdefault)(users_line(), None)

    def explain(self, error: BaseException) -> None:
        """If the script failed where it read or counted values, note that they may be the cause."""
        if not self._lines:
            return
        line, is_innermost = users_line_of(error)
        if is_innermost and line in self._lines:
            RECORD.note(
                f"the script failed at {line}, where it reads a value from the card: {self._what} "
                "there, so a real run may well get past this line"
            )
        elif isinstance(error, (ArithmeticError, AssertionError)):
            RECORD.note(
                f"the script failed at {line} after reading values from the card: {self._what}, "
                "so a real run may well get past this line"
            )

    @property
    def _what(self) -> str:
        return "every value is zero" if self._plausible.is_zero else "no value is computed"

    def explain_exit(self, line: str) -> None:
        """Note which unknown values may have made the script give up."""
        if self._lines:
            RECORD.note(
                f"the script gave up at {line} after reading values from the card: {self._what} "
                f"(read at {_in_words(self._lines)}), so a real run may continue there"
            )

    def tell(self) -> None:
        """Report where the script read unknown values."""
        self._loops.tell()
        if self._lines:
            kind = "zeros" if self._plausible.is_zero else "ordinary numbers"
            RECORD.assume(f"Unknown values read as {kind} (read at {_in_words(self._lines)})")
        if self._drawn_lines:
            RECORD.assume(
                "Random numbers from the card have the distribution of a real run, not its values "
                f"(values that depend on them are read at {_in_words(self._drawn_lines)})"
            )


def _is_read_by_pytorch() -> bool:
    """Whether one of PyTorch's own functions, not the script, reads the value."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename in _BETWEEN:
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename == known_calls.__file__


def _in_words(lines: dict[str, None]) -> str:
    shown = ", ".join(list(lines)[:LINES_SHOWN])
    more = f" and {len(lines) - LINES_SHOWN} more lines" if len(lines) > LINES_SHOWN else ""
    return shown + more
