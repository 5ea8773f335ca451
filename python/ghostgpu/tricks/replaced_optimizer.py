"""Replaces the Adam optimizers that a script makes by another optimizer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable

_POSITIONS = ("params", "lr", "betas", "eps", "weight_decay", "amsgrad")
"""The arguments of Adam and AdamW that may be positional, in order."""

Make = Callable[[Any, dict[str, Any]], Any]
"""Makes the other optimizer, from the requested class and its arguments."""


def replace_adam(torch: Any, make: Make) -> None:
    """Make `Adam(...)` and `AdamW(...)` return what `make` returns.

    The classes themselves stay, because scripts and schedulers may already refer to them. The
    result is not an instance of them, so Python does not call their `__init__`.
    """
    for kind in (torch.optim.Adam, torch.optim.AdamW):
        kind.__new__ = staticmethod(_making(kind, make))


def _making(kind: Any, make: Make) -> Callable[..., Any]:
    def new(cls: Any, *arguments: Any, **options: Any) -> Any:
        # Subclasses rely on what they inherit, and copies are created without arguments.
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
