"""Limits that a script sets for itself: `set_per_process_memory_fraction`."""

from __future__ import annotations

from typing import Any

from .peaks import used_devices
from .report import MemoryLimit


def memory_limits(torch: Any) -> list[MemoryLimit]:
    """The limits in force, if this release of PyTorch can report them."""
    fraction_of = getattr(torch._C, "_cuda_getMemoryFraction", None)
    if fraction_of is None:
        return []
    limits = []
    for device in used_devices(torch):
        fraction = fraction_of(device)
        if fraction < 1:
            total = torch.cuda.get_device_properties(device).total_memory
            limits.append(MemoryLimit(device, int(fraction * total), total))
    return limits


class UnlimitedFraction:
    """Keeps `set_per_process_memory_fraction` from limiting a card with unlimited memory.

    The fraction refers to the card's real size, so even with 1.0, a job that does not fit would run
    out of memory, which must not happen with unlimited memory.
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
