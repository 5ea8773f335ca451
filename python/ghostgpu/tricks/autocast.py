"""Mixed precision: `with torch.autocast("cuda", dtype=...):` around forward and loss.

It is entered where a model is called and left where a backward pass or an optimizer's step begins,
or the next batch is taken, so that it includes the loss but not moving a batch. Cast weights are
kept until it is left, as at the end of the `with` block. Without gradients no backward pass
follows, so they are freed when the model's call ends. In float16, losses are scaled too
(`gradient_scaling`).

Saves: about half of the activations; weights stay in float32.
Costs: nothing on cards with tensor cores; copies of weights in half precision.
Numbers: precision.
Conflicts: bfloat16-weights; in fp16 optimizer-in-backward.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping
from typing import Any, Callable

from .gradient_scaling import GradientScaling
from .hooks import Hooks
from .nested import mapped
from .trick import Trick

_NAMES = {"bf16": "bfloat16", "fp16": "float16"}


class Autocast(Trick):
    """Autocast over the script's forward passes."""

    name = "autocast"

    def __init__(self, torch: Any, hooks: Hooks, options: Mapping[str, str]) -> None:
        super().__init__(torch, hooks, options)
        self._dtype_name = _NAMES[options["dtype"]]
        self._dtype = getattr(torch, self._dtype_name)
        self._threads = threading.local()
        self._has_float32: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()
        self._model: str | None = None
        self._was_entered = False
        """Whether to scale the losses since the last step: not where the script casts itself."""
        self._scaling = GradientScaling(torch, self, lambda: self._was_entered)

    def install(self) -> None:
        self.hooks.around_models.append(self._call)
        self.hooks.before_backward.append(self._leave)
        self.hooks.before_step.append(self._leave)
        self.hooks.before_batch.append(self._leave)
        if self._dtype == self.torch.float16:
            self._scaling.install()

    def _call(self, make: Callable[..., Any], module: Any, arguments: Any, options: Any) -> Any:
        torch = self.torch
        if not torch.is_grad_enabled():
            self._leave()
        self._enter()
        if self._is_on() and self._takes_part(module):
            self._model = self._model or type(module).__name__
            self._was_entered = self._was_entered or torch.is_grad_enabled()
            if self._dtype == torch.float16 and torch.is_grad_enabled():
                mapped(torch, [arguments, options], self._scaling.note_input)
        try:
            return make(*arguments, **options)
        finally:
            if not torch.is_grad_enabled() and self._is_on():
                torch.clear_autocast_cache()

    def _is_on(self) -> bool:
        return getattr(self._threads, "context", None) is not None

    def _enter(self) -> None:
        # Leave the script's own autocast alone.
        if self._is_on() or self.torch.is_autocast_enabled():
            return
        context = self.torch.autocast("cuda", dtype=self._dtype)
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
        if self._model is None:
            return None
        did = f"{self._model} and its loss ran in {self._dtype_name} autocast"
        if self._scaling.scaled_passes:
            did += f", {self._scaling.scaled_passes} losses scaled"
        if self._scaling.left_out_steps:
            did += f", {self._scaling.left_out_steps} steps left out because gradients overflowed"
        return did

    def nothing_because(self) -> str:
        return "no model with float32 weights was called on a card outside the script's autocast"
