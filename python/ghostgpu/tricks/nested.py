"""Tensors inside models' arguments: in tuples, lists, dicts and named tuples."""

from __future__ import annotations

from typing import Any, Callable

_MAX_DEPTH = 4


def mapped(torch: Any, value: Any, change: Callable[[Any], Any], depth: int = 0) -> Any:
    """The same structure with every tensor changed; other values stay as they are."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if depth >= _MAX_DEPTH:
        return value
    if type(value) is dict:
        return {key: mapped(torch, each, change, depth + 1) for key, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(mapped(torch, each, change, depth + 1) for each in value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(mapped(torch, each, change, depth + 1) for each in value))
    return value
