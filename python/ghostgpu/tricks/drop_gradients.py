"""`optimizer.zero_grad(set_to_none=True)` before evaluation: the last step's gradients go first.

Saves: the gradients of the last step during evaluation.
Costs: nothing.
Numbers: identical, for scripts that zero gradients before the next backward pass.
Conflicts: none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .hooks import Hooks
from .trick import Trick
from .user_code import users_line


class DropGradients(Trick):
    """Drops a model's gradients when it is put into `eval()`."""

    name = "drop-gradients"

    def __init__(self, torch: Any, hooks: Hooks, options: Mapping[str, str]) -> None:
        super().__init__(torch, hooks, options)
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

    def nothing_because(self) -> str:
        return "the script calls eval() without gradients in memory"

    def line(self) -> str | None:
        return self._place and f"before {self._place}: optimizer.zero_grad(set_to_none=True)"
