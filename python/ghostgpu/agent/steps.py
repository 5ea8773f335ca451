"""Counts optimizer steps and ends the script after the requested number, or when `coverage` has
seen enough.

One step is one call of an optimizer's `step`. With several optimizers (a GAN, one optimizer per
parameter), the count of the busiest one is the count of the script, and the script is ended only
after all of them have stepped, so that no optimizer's state is missing from the peak:

* when every optimizer that holds parameters of its own has reached the limit, or
* when the busiest has gone past it and each of the others has stepped at least once, or
* when the busiest has gone `PATIENCE` steps past it: some optimizers are made and never used.
"""

from __future__ import annotations

import os
import weakref
from typing import Any, Callable

from . import preload
from .guard import quietly
from .peaks import PeakTracker
from .report import RECORD

PATIENCE = 16


class RehearsalComplete(SystemExit):
    """Ends the script after the last requested step.

    A `SystemExit` with code 0, because everything that hosts a training (the interpreter, threads,
    `multiprocessing`, `torchrun`, Lightning, the Hugging Face Trainer) already knows it as a
    clean end: `finally` blocks run, no traceback is printed, the exit code is 0.
    """

    def __init__(self) -> None:
        super().__init__(0)


class StepCounter:
    """Sees every optimizer step of the process."""

    def __init__(self, limit: int, peaks: PeakTracker) -> None:
        self.limit = limit
        """The script ends after this many steps; if 0, `is_covered` decides."""
        self._peaks = peaks
        self.is_covered: Callable[[], bool] = lambda: False
        """Asked after each step whether enough has been seen, if there is no limit."""
        self.before_end: Callable[[], object] = lambda: None
        """Called when the script is about to be ended."""
        self.after_count: Callable[[Any], object] = lambda optimizer: None
        """Called with the optimizer after each step has been counted."""
        self._optimizers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._counts: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._stepped: weakref.WeakSet[Any] = weakref.WeakSet()
        """Those that have stepped in the current step of the training: the optimizers of a GAN take
        turns, and a step ends when one of them begins anew. One that is made for the next fold
        goes on counting."""
        self._tell_library = preload.step_noter()
        self.ends_hard = False
        """End the process at once after the last step, without the script's `finally` blocks.

        For forks of the script: `finally` blocks that remove temporary files would take them away
        from later forks.
        """

    def forget_parent(self) -> None:
        """Start again in a forked child."""
        self._counts = weakref.WeakKeyDictionary()
        self._stepped = weakref.WeakSet()

    def install(self) -> None:
        """Register with PyTorch's global hook, which all `torch.optim.Optimizer`s call."""
        from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook

        patched: Any = Optimizer
        original_init = Optimizer.__init__
        remember = quietly(self._optimizers.add)

        def init(optimizer: Any, *arguments: Any, **options: Any) -> None:
            original_init(optimizer, *arguments, **options)
            remember(optimizer)

        init.__wrapped__ = original_init  # type: ignore[attr-defined]
        init.__doc__ = original_init.__doc__
        patched.__init__ = init

        note = quietly(self._note_step)
        leave = quietly(lambda: self.before_end())

        def after_step(optimizer: Any, args: Any, kwargs: Any) -> None:
            if note(optimizer):
                RECORD.report.stopped_by_step_limit = True
                leave()
                if self.ends_hard:
                    os._exit(0)
                # Raised again at every further step, should a bare `except:` swallow it.
                raise RehearsalComplete

        # A compiled `optimizer.step` must call this, not trace it. The mark is set by hand because
        # `torch.compiler.disable` would import all of Dynamo into scripts that never compile.
        after_step._torchdynamo_disable = True  # type: ignore[attr-defined]
        after_step._torchdynamo_disable_msg = "GhostGPU counts steps"  # type: ignore[attr-defined]
        register_optimizer_step_post_hook(after_step)

    def _note_step(self, optimizer: Any) -> bool:
        """Count one step; returns whether the script should stop now."""
        self._counts[optimizer] = self._counts.get(optimizer, 0) + 1
        if optimizer in self._stepped:
            self._stepped.clear()
        if not self._stepped:
            RECORD.report.steps += 1
            self._tell_library()
        self._stepped.add(optimizer)
        self._peaks.note_step(RECORD.report.steps)
        self.after_count(optimizer)
        if self.limit > 0:
            return self._is_enough()
        return self.is_covered() and not self._waits_for_an_idle_optimizer()

    def _is_enough(self) -> bool:
        counts = list(self._counts.values())
        busiest = max(counts)
        if busiest < self.limit:
            return False
        if busiest >= self.limit + PATIENCE:
            return True
        if self._waits_for_an_idle_optimizer():
            return False
        return busiest > self.limit or min(counts) >= self.limit

    def _waits_for_an_idle_optimizer(self) -> bool:
        """Whether an optimizer that never stepped holds parameters no other one steps.

        Wrappers such as SAM or ZeRO hold the same parameters as the optimizer inside them.
        """
        idle = [each for each in list(self._optimizers) if each not in self._counts]
        if not idle:
            return False
        stepped = {id(parameter) for each in self._counts for parameter in _parameters(each)}
        return any(
            parameter.requires_grad and id(parameter) not in stepped
            for each in idle
            for parameter in _parameters(each)
        )


def _parameters(optimizer: Any) -> list[Any]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]
