"""`with torch.autocast("cuda", dtype=torch.bfloat16):` around forward and loss.

It is entered where a model is called and left where a backward pass or an optimizer's step begins,
or the next batch is taken: the loss in between is a part of it, moving a batch is not. Weights that
were cast are kept until it is left, as at the end of the `with` block. Without gradients no
backward pass follows: then they go when the model's call has ended.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping
from typing import Any, Callable

from .hooks import Hooks
from .trick import Trick


class Autocast(Trick):
    """Bfloat16 autocast over the script's forward passes."""

    name = "autocast"

    def __init__(self, torch: Any, hooks: Hooks, options: Mapping[str, str]) -> None:
        super().__init__(torch, hooks, options)
        self._threads = threading.local()
        self._has_float32: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()
        self._model: str | None = None

    def install(self) -> None:
        self.hooks.around_models.append(self._call)
        self.hooks.before_backward.append(self._leave)
        self.hooks.before_step.append(self._leave)
        self.hooks.before_batch.append(self._leave)

    def _call(self, make: Callable[..., Any], module: Any, arguments: Any, options: Any) -> Any:
        torch = self.torch
        if not torch.is_grad_enabled():
            self._leave()
        self._enter()
        if self._model is None and self._is_on() and self._takes_part(module):
            self._model = type(module).__name__
        try:
            return make(*arguments, **options)
        finally:
            if not torch.is_grad_enabled() and self._is_on():
                torch.clear_autocast_cache()

    def _is_on(self) -> bool:
        return getattr(self._threads, "context", None) is not None

    def _enter(self) -> None:
        # What the script casts itself, it casts as it likes.
        if self._is_on() or self.torch.is_autocast_enabled():
            return
        context = self.torch.autocast("cuda", dtype=self.torch.bfloat16)
        context.__enter__()
        self._threads.context = context

    def _leave(self) -> None:
        context = getattr(self._threads, "context", None)
        if context is not None:
            self._threads.context = None
            context.__exit__(None, None, None)

    def _takes_part(self, module: Any) -> bool:
        known = self._has_float32.get(module)
        if known is None:
            float32 = self.torch.float32
            parameters = module.parameters()
            known = any(each.is_cuda and each.dtype == float32 for each in parameters)
            self._has_float32[module] = known
        return known

    def did(self) -> str | None:
        return self._model and f"{self._model} and its loss ran in bfloat16 autocast"
