"""Makes sure that `DistributedDataParallel` frees its first buckets before it makes new ones.

When the forward pass after the first backward pass begins, the reducer sorts the gradients into new
buckets. The old buckets live as long as NCCL's watchdog refers to them: a thread that releases
finished collectives ten times a second. Where a step takes longer than that, the old buckets are
gone before the next peak. A rehearsal gets here within milliseconds and would hold both at once,
which is too much by the size of all gradients. With steps that short a real card holds both too,
and the answer says so.

A communication hook that compresses gradients leaves its copies to the watchdog in the same way, in
every step.
"""

from __future__ import annotations

import functools
import time
import weakref
from typing import Any, Callable

from ..report import RECORD
from ..sizes import human

WATCHDOG_PERIOD_S = 0.1
"""`kWatchdogThreadSleepMillis` of PyTorch's `ProcessGroupNCCL`."""
PATIENCE_S = 2.5 * WATCHDOG_PERIOD_S
"""Long enough for the watchdog to look once after all work has finished, even if it is busy."""
MOST_PASSES = 3
"""With a static graph, the second pass only observes the order of gradients and the third rebuilds
the buckets. With `find_unused_parameters`, they are never rebuilt."""


def wait_for_watchdogs(torch: Any) -> None:
    """Return when the watchdogs of all process groups have released all finished collectives."""
    distributed = getattr(torch, "distributed", None)
    world = getattr(getattr(distributed, "distributed_c10d", None), "_world", None)
    try:
        groups = [*world.pg_map] if world is not None else []
        for group in groups:
            group._wait_for_pending_works()
    except (AttributeError, RuntimeError):
        groups = []  # an old torch, or Gloo, which has no watchdog
    if not groups:
        time.sleep(PATIENCE_S)


class RebuiltBuckets:
    """Waits for the watchdog until buckets are rebuilt, or always if there is a hook."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._passes_left: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        """In how many more passes buckets may be rebuilt; no entry before the first exchange."""
        self._with_hook: weakref.WeakSet[Any] = weakref.WeakSet()

    def install(self) -> None:
        """Wrap the reducer's functions at the beginning and the end of a forward pass."""
        bindings = getattr(self._torch._C, "_distributed_c10d", None)
        reducers = getattr(bindings, "Reducer", None)
        if reducers is None or not hasattr(reducers, "_rebuild_buckets"):
            return  # a build without distributed training
        prepare, rebuild = reducers.prepare_for_backward, reducers._rebuild_buckets

        @functools.wraps(prepare)
        def prepare_for_backward(reducer: Any, *arguments: Any) -> Any:
            self._passes_left.setdefault(reducer, MOST_PASSES)
            return prepare(reducer, *arguments)

        @functools.wraps(rebuild)
        def rebuild_buckets(reducer: Any) -> Any:
            left = self._passes_left.get(reducer)
            is_due = left is not None and (left > 0 or reducer in self._with_hook)
            if not is_due or not self._torch.cuda.is_initialized():
                return rebuild(reducer)
            self._torch.cuda.synchronize()
            wait_for_watchdogs(self._torch)
            has_rebuilt = self._measured(lambda: rebuild(reducer))
            self._passes_left[reducer] = 0 if has_rebuilt else max((left or 0) - 1, 0)
            return has_rebuilt

        reducers.prepare_for_backward = prepare_for_backward
        reducers._rebuild_buckets = rebuild_buckets
        self._notice_hooks()

    def _notice_hooks(self) -> None:
        """Wrap the functions that register a communication hook."""
        distributed = getattr(self._torch, "distributed", None)
        for name in ("_register_comm_hook", "_register_builtin_comm_hook"):
            original = getattr(distributed, name, None)
            if original is not None:
                setattr(distributed, name, self._noticing(original))

    def _noticing(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def register(reducer: Any, *arguments: Any) -> Any:
            self._with_hook.add(reducer)
            RECORD.assume(
                f"what a communication hook makes of gradients is freed before the next step; "
                f"in steps shorter than {WATCHDOG_PERIOD_S} s, a real card may hold that of several"
            )
            return original(reducer, *arguments)

        return register

    def _measured(self, rebuild: Callable[[], Any]) -> Any:
        """Rebuild the buckets, and note how many bytes a real card may hold twice."""
        before = self._allocated_ever()
        result = rebuild()
        size = self._allocated_ever() - before
        if size > 0:
            RECORD.assume(
                f"DistributedDataParallel frees its first buckets before it rebuilds them; "
                f"in steps shorter than {WATCHDOG_PERIOD_S} s, a card may hold both for a while "
                f"({human(size)} more)"
            )
        return result

    def _allocated_ever(self) -> int:
        statistics = self._torch._C._cuda_memoryStats(self._torch.cuda.current_device())
        return int(statistics["allocated_bytes"]["all"]["allocated"])
