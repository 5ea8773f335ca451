"""`with torch.no_grad():` around the calls of models that are in `eval()`.

A script that needs gradients in `eval()`, for an adversarial attack or to train with dropout
switched off, fails where it asks for them.

Saves: the graph of evaluation passes that forgot it.
Costs: nothing.
Numbers: identical.
Conflicts: none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable

from .hooks import Hooks
from .trick import Trick
from .user_code import users_line


class NoGradEvaluation(Trick):
    """Disables gradients while a model evaluates."""

    name = "no-grad-evaluation"

    def __init__(self, torch: Any, hooks: Hooks, options: Mapping[str, str]) -> None:
        super().__init__(torch, hooks, options)
        self._place: str | None = None
        self._model = ""

    def install(self) -> None:
        self.hooks.around_models.append(self._call)

    def _call(self, make: Callable[..., Any], module: Any, arguments: Any, options: Any) -> Any:
        if module.training or not self.torch.is_grad_enabled():
            return make(*arguments, **options)
        if self._place is None and any(each.requires_grad for each in module.parameters()):
            self._place, self._model = users_line(), type(module).__name__
        with self.torch.no_grad():
            return make(*arguments, **options)

    def did(self) -> str | None:
        return self._place and f"{self._model} in eval() called without a graph at {self._place}"

    def nothing_because(self) -> str:
        return "the script calls no model in eval() with a graph"

    def line(self) -> str | None:
        return self._place and f"{self._place}: with torch.no_grad(): out = model(x)"
