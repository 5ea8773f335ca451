"""`with torch.no_grad():` around the calls of models that are in `eval()`."""

from __future__ import annotations

from typing import Any, Callable

from ..stacks import users_line
from .change import Change
from .hooks import Hooks


class NoGradEvaluation(Change):
    """No graph where a model evaluates."""

    def __init__(self, torch: Any, hooks: Hooks) -> None:
        super().__init__(torch, hooks)
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

    def line(self) -> str | None:
        return self._place and f"{self._place}: with torch.no_grad(): out = model(x)"
