"""Limits that a script sets for itself, on a card with unlimited memory."""

from __future__ import annotations

from typing import Any


class UnlimitedFraction:
    """Keeps `set_per_process_memory_fraction` from limiting a card with unlimited memory.

    The fraction is one of the card's size, even 1.0 of it, so with it a job that does not fit would
    run out of memory where none must.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._fractions: dict[int, float] = {}

    def install(self) -> None:
        compiled = self._torch._C
        compiled._cuda_setMemoryFraction = self._set
        if hasattr(compiled, "_cuda_getMemoryFraction"):
            compiled._cuda_getMemoryFraction = self._get

    def _set(self, fraction: float, device: int) -> None:
        self._fractions[device] = fraction

    def _get(self, device: int) -> float:
        return self._fractions.get(device, 1.0)
