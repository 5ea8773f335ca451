"""`optimizer.zero_grad()` before the forward pass, in scripts that call it after.

A script that zeroes its gradients between forward and backward holds them during forward, together
with all activations. From the second step on, they are set to None before the model is called:
by then the script has shown that it zeroes them before each backward pass.

Saves: the gradients of the last step during the forward pass.
Costs: nothing.
Numbers: identical.
Conflicts: none. Accumulation over several batches is noticed, and left as it is.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Mapping
from typing import Any, Callable

from .dynamo_shield import shielded
from .hooks import Hooks
from .trick import Trick
from .user_code import users_line


class EarlyZeroGrad(Trick):
    """Follows forward passes, `zero_grad`, backward passes and steps of the script."""

    name = "early-zero-grad"

    def __init__(self, torch: Any, hooks: Hooks, options: Mapping[str, str]) -> None:
        super().__init__(torch, hooks, options)
        self._has_called = False
        """Whether a model was called, with gradients, since the last backward pass."""
        self._late: weakref.WeakSet[Any] = weakref.WeakSet()
        """Optimizers whose gradients the script sets to None between forward and backward."""
        self._zeroed: weakref.WeakSet[Any] = weakref.WeakSet()
        """Those of them that the script has zeroed since their last step."""
        self._stepped: weakref.WeakSet[Any] = weakref.WeakSet()
        self._dropped: weakref.WeakSet[Any] = weakref.WeakSet()
        self._place: str | None = None

    def install(self) -> None:
        kind = self.torch.optim.Optimizer
        original = kind.zero_grad

        @functools.wraps(original)
        def zero_grad(optimizer: Any, set_to_none: bool = True) -> Any:
            if self._has_called and set_to_none:
                self._late.add(optimizer)
                if optimizer in self._dropped:
                    self._place = self._place or users_line()
            self._zeroed.add(optimizer)
            return original(optimizer, set_to_none)

        kind.zero_grad = shielded(self.torch, zero_grad)
        self.hooks.around_models.append(self._call)
        self.hooks.before_backward.append(self._before_backward)
        self.hooks.around_steps.append(self._step)

    def _call(self, make: Callable[..., Any], module: Any, arguments: Any, options: Any) -> Any:
        if module.training and self.torch.is_grad_enabled():
            self._has_called = True
            for optimizer in self._late & self._stepped:
                if optimizer not in self._zeroed:
                    self._drop(optimizer)
        return make(*arguments, **options)

    def _drop(self, optimizer: Any) -> None:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._dropped.add(optimizer)
                    parameter.grad = None

    def _before_backward(self) -> None:
        self._has_called = False

    def _step(self, make: Callable[..., Any], optimizer: Any, arguments: Any, options: Any) -> Any:
        if optimizer in self._dropped and optimizer not in self._zeroed:
            raise self.refused(
                f"the script keeps gradients of {type(optimizer).__name__} over a step, though it "
                "did not before, and they were set to None before the forward pass",
                "leave --early-zero-grad out",
            )
        self._dropped.discard(optimizer)
        self._stepped.add(optimizer)
        self._zeroed.discard(optimizer)
        return make(*arguments, **options)

    def did(self) -> str | None:
        return self._place and f"gradients set to None before forward, not at {self._place}"

    def nothing_because(self) -> str:
        return "the script zeroes gradients before the forward pass already"

    def line(self) -> str | None:
        return self._place and f"{self._place}: optimizer.zero_grad() before the model is called"
