"""`DataLoader(..., drop_last=True)`: no smaller batch at the end of a pass."""

from __future__ import annotations

from typing import Any

from ..guard import quietly
from ..loader_size_point import why_not_settable
from ..stacks import users_line
from .change import Change
from .hooks import Hooks


class DropLast(Change):
    """Leaves the last batch out where it would be smaller than the others."""

    def __init__(self, torch: Any, hooks: Hooks) -> None:
        super().__init__(torch, hooks)
        self._place: str | None = None

    def install(self) -> None:
        self.hooks.before_loader.append(quietly(self._see))

    def _see(self, loader: Any) -> None:
        if why_not_settable(loader) is not None:
            return
        sampler = loader.batch_sampler
        if getattr(sampler, "drop_last", True):
            return
        try:
            samples, batch = len(loader.sampler), int(sampler.batch_size)
        except (TypeError, NotImplementedError):
            return  # nobody knows whether the last batch is smaller
        if samples % batch and samples > batch:
            self._place = self._place or users_line()
            sampler.drop_last = True
            loader.__dict__["drop_last"] = True

    def did(self) -> str | None:
        return self._place and f"the smaller last batch at {self._place} left out"

    def line(self) -> str:
        return "DataLoader(..., drop_last=True)"
