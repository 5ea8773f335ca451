"""`torch.optim.Adafactor` in place of Adam: a row and a column of state for each matrix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from .hooks import Hooks
from .trick import Trick

_KEPT = ("lr", "weight_decay", "maximize")
"""What the two have in common; momentum and its like have no counterpart."""


class Adafactor(Trick):
    """Adafactor wherever the script asks for Adam."""

    name = "adafactor"

    def __init__(self, torch: Any, hooks: Hooks, options: Mapping[str, str]) -> None:
        super().__init__(torch, hooks, options)
        self._replaced: Counter[str] = Counter()

    def install(self) -> None:
        lean = getattr(self.torch.optim, "Adafactor", None)
        if lean is None:
            return  # before 2.5
        for kind in (self.torch.optim.Adam, self.torch.optim.AdamW):
            kind.__new__ = staticmethod(self._making(kind, lean))

    def _making(self, kind: Any, lean: Any) -> Any:
        def new(cls: Any, *arguments: Any, **options: Any) -> Any:
            # A class below it counts on what it inherits; and copies are made without parameters.
            if cls is not kind or not (arguments or "params" in options):
                return object.__new__(cls)
            # What is no Adam is not initialised as one by Python.
            named = dict(zip(("params", "lr"), arguments))
            named.update({name: value for name, value in options.items() if name == "params"})
            named.update({name: options[name] for name in _KEPT if name in options})
            named["params"] = _groups(named["params"])
            self._replaced[kind.__name__] += 1
            return lean(**named)

        return new

    def did(self) -> str | None:
        if not self._replaced:
            return None
        return f"{' and '.join(sorted(self._replaced))} replaced by Adafactor"

    def line(self) -> str:
        return "optimizer = torch.optim.Adafactor(model.parameters(), lr=...)"


def _groups(parameters: Any) -> Any:
    if isinstance(parameters, Mapping):
        return parameters
    listed = list(parameters)
    if not listed or not isinstance(listed[0], Mapping):
        return listed
    foreign = ("betas", "eps", "amsgrad", "foreach", "fused", "capturable", "differentiable")
    return [
        {name: value for name, value in group.items() if name not in foreign} for group in listed
    ]
