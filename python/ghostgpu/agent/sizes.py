"""Sizes as people read them, the same as in every answer (`crates/text`)."""

from __future__ import annotations

_UNITS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def human(size: int) -> str:
    """`1.50 GiB`, `20.00 MiB`, `512 bytes`."""
    for unit, name in _UNITS:
        if size >= unit:
            return f"{size / unit:.2f} {name}"
    return "1 byte" if size == 1 else f"{size} bytes"
