"""A size point: the script's `DataLoader`.

The batch size is set when the script begins to iterate the loader, because only then is it known
what the loader is for. The training loader is the one iterated with gradients enabled; other
loaders with the same batch size that are iterated before the first optimizer step get the same
new size.
"""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, Any

from ...tricks.loader_batch import set_batch, why_not_settable
from ..guard import quietly
from ..report import RECORD
from ..stacks import users_line
from .cut_sequences import CutBatches

if TYPE_CHECKING:
    from .size_points import SizeSetter


class LoaderSizePoint:
    """Wraps `DataLoader.__iter__`."""

    def __init__(self, torch: Any, setter: SizeSetter, is_for_training: bool) -> None:
        self._torch = torch
        self._setter = setter
        self._is_for_training = is_for_training
        self._seen: weakref.WeakSet[Any] = weakref.WeakSet()
        # Loaders whose batches are measured, and the number of tokens they are cut to, if any.
        self._cut_loaders: weakref.WeakSet[Any] = weakref.WeakSet()
        self._length: int | None = None

    def install(self) -> None:
        from torch.utils.data import DataLoader

        patched: Any = DataLoader
        original = DataLoader.__iter__
        # Not guarded: the end of the last fork passes through here as an exception.
        see = self._see

        @functools.wraps(original)
        def iterate(loader: Any) -> Any:
            see(loader)
            batches = original(loader)
            return self._cut(loader, batches)

        patched.__iter__ = iterate

    def _see(self, loader: Any) -> None:
        report = self._setter.report
        if not self._setter.is_active or loader in self._seen or RECORD.report.steps > 0:
            return
        if self._is_for_training and not self._torch.is_grad_enabled():
            report.has_other_loader = True
            return
        self._seen.add(loader)
        problem = why_not_settable(loader)
        if report.is_found:
            if problem is not None or loader.batch_sampler.batch_size != report.batch:
                RECORD.assume(
                    f"the batch of the DataLoader at {users_line()} was left as it is: it is "
                    "another one than the training loader's"
                )
                return
        elif problem is not None:
            self._setter.refuse(f"the DataLoader at {users_line()} {problem}")
            return
        else:
            report.place = f"the DataLoader iterated at {users_line()}"
            report.batch = int(loader.batch_sampler.batch_size)
            report.samples = _samples(loader)
            report.drops_last = bool(getattr(loader.batch_sampler, "drop_last", False))
        sizes = self._setter.arrive() or {}
        if "batch" in sizes:
            set_batch(loader, int(sizes["batch"]))
        else:
            self._cut_loaders.add(loader)
            self._length = int(sizes["seq"]) if "seq" in sizes else None

    def _cut(self, loader: Any, batches: Any) -> Any:
        """The batches, cut if this fork is to have shorter sequences."""
        if loader not in self._cut_loaders or not self._setter.is_active:
            return batches
        return CutBatches(self._torch, batches, self._setter.report, self._length)


@quietly
def _samples(loader: Any) -> int | None:
    """How many samples one pass has; None for data of unknown length."""
    try:
        return len(loader.sampler)
    except (TypeError, NotImplementedError, AttributeError):
        return None
