"""`model.to(torch.bfloat16)` before the model goes to the card.

A model that is made on the card is cast when it is first called. Its float32 inputs are cast at
each call, as the user would do it.

Saves: half of the weights, gradients, optimizer state and activations.
Costs: small updates are lost to rounding.
Numbers: precision.
Conflicts: autocast.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Mapping
from typing import Any, Callable

from .dynamo_shield import shielded
from .hooks import Hooks
from .trick import Trick

_MAX_DEPTH = 3

_LARGE = 1 << 20
"""From this many elements on, casting would take time and the machine's memory."""


class Bfloat16Weights(Trick):
    """Parameters and buffers in bfloat16."""

    name = "bfloat16-weights"

    def __init__(self, torch: Any, hooks: Hooks, options: Mapping[str, str]) -> None:
        super().__init__(torch, hooks, options)
        self._seen: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()
        self._cast_parameters: list[str] = []

    def install(self) -> None:
        module_type = self.torch.nn.Module
        for name in ("to", "cuda"):
            original = getattr(module_type, name)
            setattr(module_type, name, shielded(self.torch, self._moving(original, name)))
        self.hooks.around_models.append(self._call)

    def _moving(self, original: Callable[..., Any], name: str) -> Callable[..., Any]:
        @functools.wraps(original)
        def move(module: Any, *arguments: Any, **options: Any) -> Any:
            if name == "cuda" or self._goes_to_card(arguments, options):
                self._cast(module)
            return original(module, *arguments, **options)

        return move

    def _goes_to_card(self, arguments: Any, options: Any) -> bool:
        try:
            device = self.torch._C._nn._parse_to(*arguments, **options)[0]
        except (TypeError, RuntimeError, ValueError):
            return False  # the script's own mistake, or a method of another kind
        return device is not None and device.type == "cuda"

    def _cast(self, module: Any) -> None:
        torch = self.torch
        weights = [each for each in module.parameters() if each.dtype == torch.float32]
        buffers = [each for each in module.buffers() if each.dtype == torch.float32]
        if not weights and not buffers:
            return

        def cast(tensor: Any) -> Any:
            if tensor.dtype != torch.float32:
                return tensor
            is_large = tensor.device.type == "cpu" and tensor.numel() >= _LARGE
            if is_large and self.hooks.is_rehearsed:
                # A rehearsal's card holds no values, so none need to be written.
                return torch.empty_like(tensor, dtype=torch.bfloat16)
            return tensor.to(torch.bfloat16)

        module._apply(cast)
        if weights:
            self._cast_parameters.append(f"{len(weights)} parameters of {type(module).__name__}")

    def _call(self, make: Callable[..., Any], module: Any, arguments: Any, options: Any) -> Any:
        if self._is_model(module):
            arguments = tuple(self._fitting(each) for each in arguments)
            options = {name: self._fitting(each) for name, each in options.items()}
        return make(*arguments, **options)

    def _is_model(self, module: Any) -> bool:
        """Whether this module has bfloat16 weights, after casting weights that are on the card."""
        known = self._seen.get(module)
        if known is None:
            if any(each.is_cuda for each in module.parameters()):
                self._cast(module)
            bfloat16 = self.torch.bfloat16
            known = any(each.dtype == bfloat16 for each in module.parameters())
            self._seen[module] = known
        return known

    def _fitting(self, value: Any, depth: int = 0) -> Any:
        torch = self.torch
        if type(value) is torch.Tensor:
            return value.to(torch.bfloat16) if value.dtype == torch.float32 else value
        if depth >= _MAX_DEPTH:
            return value
        if type(value) in (list, tuple):
            return type(value)(self._fitting(each, depth + 1) for each in value)
        if type(value) is dict:
            return {name: self._fitting(each, depth + 1) for name, each in value.items()}
        return value

    def did(self) -> str | None:
        if not self._cast_parameters:
            return None
        return f"{', '.join(self._cast_parameters[:3])} cast to bfloat16"

    def nothing_because(self) -> str:
        return "no model with float32 weights was moved to a card or called on one"

    def line(self) -> str:
        return "model.to(torch.bfloat16)   # before .cuda(); and model(x.to(torch.bfloat16))"
