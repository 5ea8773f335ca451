"""Single values that the script, or PyTorch itself, reads from the card.

`loss.item()`, `float(x)` and `if mask.all():` all end in one kernel. Unless the value is known (see
`known_values`) it is an ordinary one (see `plausible`), because the card holds none, and a script
that branches on it may take another way than on a real card: so the report names the lines. Some of
PyTorch's own kernels read a value in the middle of their work, to learn how long their result is;
those get the answer that `data_dependent` has decided on.
"""

from __future__ import annotations

import contextlib
import math
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

from . import kernels, known_calls, known_values
from .assertions import asserted
from .guard import quietly
from .kernels import put_in_front
from .known_values import KnownValues
from .plausible import Plausible
from .preload import ReadbackAnswerer
from .report import RECORD
from .stacks import users_line, users_line_of
from .waiting_loops import WaitingLoops

LINES_SHOWN = 5

_BETWEEN = frozenset((__file__, kernels.__file__, known_values.__file__))
"""Files of the agent's between a kernel and what called it."""


class Readbacks:
    """Sees every read of a single value; remembers the lines, in order of first appearance."""

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
        """Stand in front of the kernel that every read of a single value ends in."""
        put_in_front(self._torch, "_local_scalar_dense", "CUDA", self._read)

    @contextlib.contextmanager
    def answering(self, length: int, *, checks: float = math.inf) -> Iterator[None]:
        """Inside, when the thread reads a number it gets `length`, and its first checks succeed.

        A check is a truth value; `checks` says how many of them are true, all others are not.
        """
        self._prepared.length = length
        self._prepared.checks = checks
        try:
            yield
        finally:
            self._prepared.length = None

    @contextlib.contextmanager
    def answering_copy(self, value: int, size_bytes: int) -> Iterator[None]:
        """Inside, the thread's first plain copy of this size from the card reads `value`."""
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
        if not is_check:
            value = self._loops.other_value(value)
        if value:
            value = self._torch.tensor(value, dtype=tensor.dtype, device="cpu")
            self._answerer.answer(self._bits(value), tensor.element_size())

    def _bits(self, value: Any) -> int:
        """A number as the card would hold it."""
        return int.from_bytes(value.reshape(1).view(self._torch.uint8).tolist(), "little")

    @quietly
    def remember_line(self) -> None:
        """Someone reads values here that nobody knows."""
        self._lines.setdefault(users_line(), None)

    def _remember_draw(self) -> None:
        quietly(self._drawn_lines.setdefault)(users_line(), None)

    def explain(self, error: BaseException) -> None:
        """Say that the values may be to blame, if the script failed where it read or counted."""
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
        """Say which values may have led the script to give up."""
        if self._lines:
            RECORD.note(
                f"the script gave up at {line} after reading values from the card: {self._what} "
                f"(read at {_in_words(self._lines)}), so a real run may continue there"
            )

    def tell(self) -> None:
        """Say in the report where the script looked at values."""
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
    """Whether one of PyTorch's functions reads a value in the middle of its work."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename in _BETWEEN:
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename == known_calls.__file__


def _in_words(lines: dict[str, None]) -> str:
    shown = ", ".join(list(lines)[:LINES_SHOWN])
    more = f" and {len(lines) - LINES_SHOWN} more lines" if len(lines) > LINES_SHOWN else ""
    return shown + more
