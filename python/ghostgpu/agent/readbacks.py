"""Single values that the script, or PyTorch itself, reads from the card.

`loss.item()`, `float(x)` and `if mask.all():` all end in one kernel. Unless the value is known (see
`known_values`) it is zero, because the card holds none, and a script that branches on it may take
another way than on a real card: so the report names the lines. Some of PyTorch's own kernels read
a value in the middle of their work, to learn how long their result is; those get the answer that
`data_dependent` has decided on.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Iterator
from typing import Any

from .guard import quietly
from .kernels import put_in_front
from .known_values import KnownValues
from .preload import ReadbackAnswerer
from .report import RECORD
from .stacks import users_line, users_line_of

LINES_SHOWN = 5


class Readbacks:
    """Sees every read of a single value; remembers the lines, in order of first appearance."""

    def __init__(self, torch: Any, answerer: ReadbackAnswerer, known: KnownValues) -> None:
        self._torch = torch
        self._answerer = answerer
        self._known = known
        self._lines: dict[str, None] = {}
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
        else:
            if tensor.dtype is self._torch.bool:
                length = int(self._prepared.checks > 0)
                self._prepared.checks -= 1
            self._answerer.answer(length, tensor.element_size())
        return original(tensor)

    def _bits(self, value: Any) -> int:
        """A number as the card would hold it."""
        if not value.is_floating_point():
            return int(value)
        torch = self._torch
        integers = {2: torch.int16, 4: torch.int32, 8: torch.int64}
        return int(value.reshape(1).view(integers[value.element_size()]))

    @quietly
    def remember_line(self) -> None:
        """Someone reads values here that nobody knows."""
        self._lines.setdefault(users_line(), None)

    def explain(self, error: BaseException) -> None:
        """Say that the zeros are to blame, if the script failed where it read one, or counted."""
        if not self._lines:
            return
        line, is_innermost = users_line_of(error)
        if is_innermost and line in self._lines:
            RECORD.note(
                f"the script failed at {line}, where it reads a value from the card: every value "
                "there is zero, so a real run may well get past this line"
            )
        elif isinstance(error, (ArithmeticError, AssertionError)):
            RECORD.note(
                f"the script failed at {line} after reading values from the card: they are zeros, "
                "so a real run may well get past this line"
            )

    def explain_exit(self, line: str) -> None:
        """Say which values may have led the script to give up."""
        if self._lines:
            RECORD.note(
                f"the script gave up at {line} after reading values from the card: they are zeros "
                f"(read at {self._lines_in_words()}), so a real run may well go on there"
            )

    def tell(self) -> None:
        """Say in the report where the script looked at values."""
        if self._lines:
            RECORD.assume(
                f"Values read back from the card are zeros (read at {self._lines_in_words()})"
            )

    def _lines_in_words(self) -> str:
        lines = list(self._lines)
        shown = ", ".join(lines[:LINES_SHOWN])
        more = f" and {len(lines) - LINES_SHOWN} more lines" if len(lines) > LINES_SHOWN else ""
        return shown + more
