"""Counts the lines at which the script reads a single value from the card.

`loss.item()`, `float(x)`, `if mask.all():` all end here. The value is zero, because the card holds
none, and a script that branches on it may take another way than on a real card: so the report
names the lines.
"""

from __future__ import annotations

from typing import Any

from .guard import quietly
from .kernels import put_in_front
from .report import RECORD
from .stacks import users_line

LINES_SHOWN = 5


class Readbacks:
    """Remembers where values were read back, in the order of first appearance."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._lines: dict[str, None] = {}

    def install(self) -> None:
        """Stand in front of the kernel that every read of a single value ends in."""
        put_in_front(self._torch, "_local_scalar_dense", "CUDA", self._read)

    def _read(self, original: Any, tensor: Any) -> Any:
        self._remember()
        return original(tensor)

    @quietly
    def _remember(self) -> None:
        self._lines.setdefault(users_line(), None)

    def tell(self) -> None:
        """Say in the report where the script looked at values."""
        if not self._lines:
            return
        lines = list(self._lines)
        shown = ", ".join(lines[:LINES_SHOWN])
        more = f" and {len(lines) - LINES_SHOWN} more lines" if len(lines) > LINES_SHOWN else ""
        RECORD.assume(f"Values read back from the card are zeros (read at {shown}{more})")
