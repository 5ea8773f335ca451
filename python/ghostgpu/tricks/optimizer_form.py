"""`fused=True`, or the plain loop, in place of the foreach form of PyTorch's optimizers.

Saves: the temporaries of the foreach form, about one copy of the parameters.
Costs: fused: nothing; for-loop: many small kernels.
Numbers: rounding.
Conflicts: adafactor, eight-bit-optimizer.
"""

from __future__ import annotations

import functools
import inspect
from collections import Counter
from collections.abc import Mapping
from typing import Any

from .hooks import Hooks
from .trick import Trick

_SETTINGS: dict[str, dict[str, bool]] = {
    "fused": {"fused": True, "foreach": False},
    "foreach": {"foreach": True, "fused": False},
    "for-loop": {"foreach": False, "fused": False},
}


class OptimizerForm(Trick):
    """Changes the arguments of the script's optimizers."""

    name = "optimizer-form"

    def __init__(self, torch: Any, hooks: Hooks, options: Mapping[str, str]) -> None:
        super().__init__(torch, hooks, options)
        self._form = options["form"]
        self._made: Counter[str] = Counter()

    def install(self) -> None:
        base = self.torch.optim.Optimizer
        for kind in vars(self.torch.optim).values():
            if inspect.isclass(kind) and issubclass(kind, base) and kind is not base:
                self._change(kind)
        self.hooks.after_optimizer.append(self._check)

    def _change(self, kind: Any) -> None:
        known = inspect.signature(kind.__init__).parameters
        wanted = {name: on for name, on in _SETTINGS[self._form].items() if name in known}
        if self._form not in wanted and self._form != "for-loop":
            return  # refused when one is made
        original = kind.__init__

        @functools.wraps(original)
        def initialise(optimizer: Any, params: Any, *arguments: Any, **options: Any) -> None:
            original(optimizer, self._groups(params), *arguments, **{**options, **wanted})

        kind.__init__ = initialise

    def _groups(self, params: Any) -> Any:
        if isinstance(params, (self.torch.Tensor, Mapping)):
            return params  # invalid: the optimizer itself reports it
        listed = list(params)
        for group in listed:
            if isinstance(group, dict):
                for name in ("fused", "foreach"):
                    group.pop(name, None)
        return listed

    def _check(self, optimizer: Any) -> None:
        settings = optimizer.defaults
        name = type(optimizer).__name__
        is_right = all(
            not settings.get(setting) or on for setting, on in _SETTINGS[self._form].items()
        ) and (self._form == "for-loop" or bool(settings.get(self._form)))
        if not is_right:
            raise self.refused(
                f"{name} has no {self._form} form",
                "use --optimizer for-loop, which every optimizer of PyTorch has, or leave it out",
            )
        self._made[name] += 1

    def did(self) -> str | None:
        if not self._made:
            return None
        return f"{' and '.join(sorted(self._made))} in its {self._form} form"

    def nothing_because(self) -> str:
        return "the script made no optimizer"

    def line(self) -> str:
        words = ", ".join(f"{name}={on}" for name, on in _SETTINGS[self._form].items() if on)
        return f"torch.optim.AdamW(..., {words or 'foreach=False'})"
