"""`torch.cuda.set_per_process_memory_fraction`: nine tenths of the card, or all of it.

Saves: leave-room: room for libraries that allocate beside PyTorch; no-limit: nothing.
Costs: leave-room: a tenth of the card; no-limit: nothing.
Numbers: identical.
Conflicts: leave-room and no-limit exclude each other.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from typing import Any

from .hooks import Hooks
from .trick import Trick
from .user_code import users_line


class LeaveRoom(Trick):
    """A limit of nine tenths, set as soon as CUDA starts."""

    name = "leave-room"

    def __init__(self, torch: Any, hooks: Hooks, options: Mapping[str, str]) -> None:
        super().__init__(torch, hooks, options)
        self._is_set = False

    def install(self) -> None:
        self.torch.cuda._lazy_call(self._set)

    def _set(self) -> None:
        for device in range(self.torch.cuda.device_count()):
            self.torch._C._cuda_setMemoryFraction(0.9, device)
            self._is_set = True

    def did(self) -> str | None:
        return "PyTorch may use nine tenths of the card" if self._is_set else None

    def nothing_because(self) -> str:
        return "the script did not use a card"

    def line(self) -> str:
        return "torch.cuda.set_per_process_memory_fraction(0.9)   # right at the start"


class NoLimit(Trick):
    """Ignores the script's own limit."""

    name = "no-limit"

    def __init__(self, torch: Any, hooks: Hooks, options: Mapping[str, str]) -> None:
        super().__init__(torch, hooks, options)
        self._place: str | None = None
        self._fraction = 1.0

    def install(self) -> None:
        setter = self.torch._C._cuda_setMemoryFraction

        @functools.wraps(setter)
        def set_fraction(fraction: float, device: int) -> None:
            if fraction < 1:
                self._place, self._fraction = self._place or users_line(), fraction
            setter(1.0, device)

        self.torch._C._cuda_setMemoryFraction = set_fraction
        for name in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"):
            if "per_process_memory_fraction" in os.environ.get(name, ""):
                self._place = name
                self.torch.cuda._lazy_call(self._lift)

    def _lift(self) -> None:
        for device in range(self.torch.cuda.device_count()):
            self.torch._C._cuda_setMemoryFraction(1.0, device)

    def did(self) -> str | None:
        return self._place and f"the limit of {self._place} left out"

    def nothing_because(self) -> str:
        return "the script sets no limit"

    def line(self) -> str | None:
        return self._place and f"{self._place}: no set_per_process_memory_fraction below 1.0"
