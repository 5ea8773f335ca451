"""Which stage the script is in, logged whenever it changes.

Stages nest: Lightning runs the whole training step inside `optimizer.step`, and a backward pass may
recompute a layer. The innermost stage counts, except that everything inside a backward pass is
backward.
"""

from __future__ import annotations

import functools
import threading
from typing import Any, Callable

from ...tricks.dynamo_shield import shielded
from .. import shared_numbers
from ..guard import quietly
from ..report import RECORD
from .memory_log import MemoryLog


class Stages:
    """The stack of stages. Only the main thread changes it: other threads work for that one."""

    def __init__(self, torch: Any, log: MemoryLog) -> None:
        self._torch = torch
        self._log = log
        self._stack: list[int] = []
        self.before_backward: Callable[[Any], None] = lambda tensors: None
        self.after_backward: Callable[[], None] = lambda: None

    @property
    def current(self) -> int:
        """The current stage."""
        return self._stack[-1] if self._stack else shared_numbers.SCRIPT

    def enter(self, stage: int) -> bool:
        """Begin a stage; returns whether it counts. If it does, `leave` must follow."""
        if (
            self.current == shared_numbers.BACKWARD
            or threading.current_thread() is not threading.main_thread()
        ):
            return False
        self._stack.append(stage)
        self.tell()
        return True

    def leave(self) -> None:
        """End the stage that was entered last."""
        if self._stack:
            self._stack.pop()
        self.tell()

    def tell(self) -> None:
        """Write the current stage to the log."""
        self._log.note_stage(self.current, RECORD.report.steps)

    def install(self) -> None:
        """Wrap the functions that begin a stage, except calls of models, which `modules` wraps."""
        torch = self._torch
        self._wrap(torch.nn.Module, "_apply", shared_numbers.MOVING)
        self._wrap(torch.nn.Module, "zero_grad", shared_numbers.ZERO_GRAD)
        self._wrap(torch.optim.Optimizer, "zero_grad", shared_numbers.ZERO_GRAD)
        for module in (torch.autograd, torch.autograd.graph):
            if hasattr(module, "_engine_run_backward"):
                original = module._engine_run_backward
                module._engine_run_backward = self._backward(original)

    def _wrap(self, owner: Any, name: str, stage: int) -> None:
        original = getattr(owner, name)

        @functools.wraps(original)
        def staged(*arguments: Any, **options: Any) -> Any:
            if self.current == stage or not self.enter(stage):
                return original(*arguments, **options)
            try:
                return original(*arguments, **options)
            finally:
                self.leave()

        setattr(owner, name, shielded(self._torch, staged))

    def _backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def run_backward(tensors: Any, *arguments: Any, **options: Any) -> Any:
            if not self.enter(shared_numbers.BACKWARD):
                return original(tensors, *arguments, **options)
            quietly(self.before_backward)(tensors)
            try:
                return original(tensors, *arguments, **options)
            finally:
                quietly(self.after_backward)()
                self.leave()

        return shielded(self._torch, run_backward)
