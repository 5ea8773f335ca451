"""Another optimizer where the script makes Adam."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable

_POSITIONS = ("params", "lr", "betas", "eps", "weight_decay", "amsgrad")
"""The arguments of Adam and AdamW that may come without a name, in their order."""

Make = Callable[[Any, dict[str, Any]], Any]
"""Makes the other one, of the class that was asked for and what it was to be made with."""


def replace_adam(torch: Any, make: Make) -> None:
    """Have `make` make what the script gets for `Adam(...)` and `AdamW(...)`.

    The class stays what it is, since scripts and schedulers know it by then. What is made is none
    of it, and so Python does not initialise it as one.
    """
    for kind in (torch.optim.Adam, torch.optim.AdamW):
        kind.__new__ = staticmethod(_making(kind, make))


def _making(kind: Any, make: Make) -> Callable[..., Any]:
    def new(cls: Any, *arguments: Any, **options: Any) -> Any:
        # A class below it counts on what it inherits; and copies are made without parameters.
        if cls is not kind or not (arguments or "params" in options):
            return object.__new__(cls)
        return make(kind, {**dict(zip(_POSITIONS, arguments)), **options})

    return new


def groups_without(parameters: Any, foreign: tuple[str, ...]) -> Any:
    """Parameters, or groups of them, without settings that the other optimizer does not know."""
    if isinstance(parameters, Mapping):
        return parameters
    listed = list(parameters)
    if not listed or not isinstance(listed[0], Mapping):
        return listed
    return [
        {name: value for name, value in group.items() if name not in foreign} for group in listed
    ]
