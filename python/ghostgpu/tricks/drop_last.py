"""`DataLoader(..., drop_last=True)`: no smaller batch at the end of a pass.

Saves: what PyTorch caches for a second size of everything.
Costs: some samples of each epoch are not trained on.
Numbers: training.
Conflicts: none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .faults import quietly
from .hooks import Hooks
from .loader_batch import why_not_settable
from .trick import Trick
from .user_code import users_line


class DropLast(Trick):
    """Drops the last batch if it would be smaller than the others."""

    name = "drop-last"

    def __init__(self, torch: Any, hooks: Hooks, options: Mapping[str, str]) -> None:
        super().__init__(torch, hooks, options)
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
            return  # it is not known whether the last batch is smaller
        if samples % batch and samples > batch:
            self._place = self._place or users_line()
            sampler.drop_last = True
            loader.__dict__["drop_last"] = True

    def did(self) -> str | None:
        return self._place and f"the smaller last batch at {self._place} left out"

    def nothing_because(self) -> str:
        return "no DataLoader has a last batch that is smaller than the others"

    def line(self) -> str:
        return "DataLoader(..., drop_last=True)"
