"""`optimizer.zero_grad(set_to_none=True)` before evaluation: the last step's gradients go first.

Only gradients that a step has used. That the script zeroes them before it adds to them is seen in
earlier steps, or when it does so after the evaluation.

Saves: the gradients of the last step during evaluation.
Costs: nothing.
Numbers: identical.
Conflicts: none.
Refused: scripts that keep gradients over a step, and add to them after an evaluation.
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


class DropGradients(Trick):
    """Drops a model's gradients when it is put into `eval()`."""

    name = "drop-gradients"

    def __init__(self, torch: Any, hooks: Hooks, options: Mapping[str, str]) -> None:
        super().__init__(torch, hooks, options)
        self._place: str | None = None
        self._used: weakref.WeakSet[Any] = weakref.WeakSet()
        """Optimizers that have stepped, and no backward pass has come since."""
        self._zeroed: weakref.WeakSet[Any] = weakref.WeakSet()
        """Optimizers whose gradients the script has zeroed since their last step."""
        self._by_hand: weakref.WeakSet[Any] = weakref.WeakSet()
        """Optimizers whose gradients were gone when a backward pass began, without `zero_grad`."""
        self._dropped: weakref.WeakSet[Any] = weakref.WeakSet()
        """Optimizers whose gradients were dropped since their last step."""

    def install(self) -> None:
        for kind in (self.torch.optim.Optimizer, self.torch.nn.Module):
            kind.zero_grad = shielded(self.torch, self._zeroing(kind.zero_grad))
        self.hooks.before_mode.append(self._change_mode)
        self.hooks.before_backward.append(self._before_backward)
        self.hooks.around_steps.append(self._step)

    def _zeroing(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def zero_grad(holder: Any, *arguments: Any, **options: Any) -> Any:
            result = original(holder, *arguments, **options)
            inside = {id(each) for each in _parameters(holder)}
            for optimizer in self.hooks.optimizers:
                if holder is optimizer or all(id(one) in inside for one in _parameters(optimizer)):
                    self._zeroed.add(optimizer)
            return result

        return zero_grad

    def _change_mode(self, module: Any, mode: bool) -> None:
        if mode:
            return
        inside = {id(each) for each in module.parameters()}
        for optimizer in self._used:
            found = [
                each
                for each in _parameters(optimizer)
                if id(each) in inside and each.grad is not None
            ]
            if found:
                self._place = self._place or users_line()
                self._dropped.add(optimizer)
            for each in found:
                each.grad = None

    def _before_backward(self) -> None:
        for optimizer in self._used - self._zeroed:
            if optimizer in self._dropped:
                if optimizer in self._by_hand:
                    continue
                raise self.refused(
                    f"the script keeps gradients of {type(optimizer).__name__} over a step and "
                    "adds to them, and they were dropped before the evaluation",
                    "leave --eval-drop-gradients out",
                )
            if all(each.grad is None for each in _parameters(optimizer)):
                self._by_hand.add(optimizer)
        self._used.clear()

    def _step(self, make: Callable[..., Any], optimizer: Any, arguments: Any, options: Any) -> Any:
        result = make(*arguments, **options)
        self._used.add(optimizer)
        self._zeroed.discard(optimizer)
        self._dropped.discard(optimizer)
        return result

    def did(self) -> str | None:
        return self._place and f"gradients dropped before {self._place}"

    def nothing_because(self) -> str:
        return "the script calls eval() without gradients in memory"

    def line(self) -> str | None:
        return self._place and f"before {self._place}: optimizer.zero_grad(set_to_none=True)"


def _parameters(holder: Any) -> list[Any]:
    """Those of a model or an optimizer."""
    groups = getattr(holder, "param_groups", None)
    if groups is None:
        return list(holder.parameters())
    return [each for group in groups for each in group["params"]]
