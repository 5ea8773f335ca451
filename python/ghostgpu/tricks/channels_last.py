"""`model.to(memory_format=torch.channels_last)`, and the same for the images it is given.

Saves: copies and workspaces in which cuDNN reorders data, above all in half precision.
Costs: nothing on cards with tensor cores; may be slower elsewhere.
Numbers: rounding: cuDNN chooses other kernels.
Conflicts: none.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any, Callable

from .hooks import Hooks
from .nested import mapped
from .trick import Trick


class ChannelsLast(Trick):
    """Reorders a model's weights when it is first called, and its images at every call."""

    name = "channels-last"

    def __init__(self, torch: Any, hooks: Hooks, options: Mapping[str, str]) -> None:
        super().__init__(torch, hooks, options)
        self._models: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()
        self._done: list[str] = []

    def install(self) -> None:
        self.hooks.around_models.append(self._call)

    def _call(self, make: Callable[..., Any], module: Any, arguments: Any, options: Any) -> Any:
        if self._is_reordered(module):
            arguments = mapped(self.torch, tuple(arguments), self._reordered)
            options = mapped(self.torch, dict(options), self._reordered)
        return make(*arguments, **options)

    def _is_reordered(self, module: Any) -> bool:
        known = self._models.get(module)
        if known is None:
            kinds = (self.torch.nn.Conv2d, self.torch.nn.ConvTranspose2d)
            count = sum(isinstance(part, kinds) for part in module.modules())
            known = self._models[module] = count > 0
            if known:
                module.to(memory_format=self.torch.channels_last)
                self._done.append(f"{count} convolutions of {type(module).__name__}")
        return known

    def _reordered(self, tensor: Any) -> Any:
        if tensor.dim() != 4 or not tensor.is_floating_point():
            return tensor
        return tensor.contiguous(memory_format=self.torch.channels_last)

    def did(self) -> str | None:
        return f"{', '.join(self._done[:3])} in channels_last order" if self._done else None

    def nothing_because(self) -> str:
        return "no model with two-dimensional convolutions was called"

    def line(self) -> str:
        return "model.to(memory_format=torch.channels_last)   # and so for each x"
