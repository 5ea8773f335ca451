"""`optimizer.zero_grad(set_to_none=True)` before evaluation: the last step's gradients go first."""

from __future__ import annotations

from typing import Any

from ..stacks import users_line
from .change import Change
from .hooks import Hooks


class DropGradients(Change):
    """Drops a model's gradients where it is put into `eval()`."""

    def __init__(self, torch: Any, hooks: Hooks) -> None:
        super().__init__(torch, hooks)
        self._place: str | None = None

    def install(self) -> None:
        self.hooks.before_mode.append(self._change_mode)

    def _change_mode(self, module: Any, mode: bool) -> None:
        if mode or all(each.grad is None for each in module.parameters()):
            return
        self._place = self._place or users_line()
        module.zero_grad(set_to_none=True)

    def did(self) -> str | None:
        return self._place and f"gradients dropped before {self._place}"

    def line(self) -> str | None:
        return self._place and f"before {self._place}: optimizer.zero_grad(set_to_none=True)"
