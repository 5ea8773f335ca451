"""The first buckets of `DistributedDataParallel` are gone before the second ones are made.

After its first backward pass the reducer sorts the gradients into new buckets, when the next
forward pass begins. The old buckets live for as long as somebody refers to them, and that is
NCCL's watchdog: a thread that lets go of a finished collective when it next looks, ten times a
second. On a real card the first step takes longer than that, since every kernel and library is
loaded in it, so the old buckets have gone. A rehearsal is at this place within milliseconds, and
would have both at once: as many bytes too much as the model has gradients.
"""

from __future__ import annotations

import functools
import time
import weakref
from typing import Any

WATCHDOG_PERIOD_S = 0.1
"""`kWatchdogThreadSleepMillis` of PyTorch's `ProcessGroupNCCL`."""
PATIENCE_S = 2.5 * WATCHDOG_PERIOD_S
"""Enough for the watchdog to look once after everything is finished, on a busy machine too."""


class RebuiltBuckets:
    """Waits for the watchdog, once for each reducer."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._is_due: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()
        """False once the wait is over; missing before a pass whose gradients are exchanged."""

    def install(self) -> None:
        """Wrap what the forward pass of a wrapped model begins with, and what it ends with."""
        bindings = getattr(self._torch._C, "_distributed_c10d", None)
        reducers = getattr(bindings, "Reducer", None)
        if reducers is None or not hasattr(reducers, "_rebuild_buckets"):
            return  # a build without distributed training
        prepare, rebuild = reducers.prepare_for_backward, reducers._rebuild_buckets

        @functools.wraps(prepare)
        def prepare_for_backward(reducer: Any, *arguments: Any) -> Any:
            self._is_due.setdefault(reducer, True)
            return prepare(reducer, *arguments)

        @functools.wraps(rebuild)
        def rebuild_buckets(reducer: Any) -> Any:
            if self._is_due.get(reducer):
                self._is_due[reducer] = False
                if self._torch.cuda.is_initialized():
                    self._torch.cuda.synchronize()
                    time.sleep(PATIENCE_S)
            return rebuild(reducer)

        reducers.prepare_for_backward = prepare_for_backward
        reducers._rebuild_buckets = rebuild_buckets
