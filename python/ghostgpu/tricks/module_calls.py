"""Puts a function around the call of every `torch.nn.Module`."""

from __future__ import annotations

import functools
import sys
from types import MethodType
from typing import Any, Callable

from .dynamo_shield import shielded

Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Takes the original function and returns its replacement."""


class _WatchedCall:
    """Replaces `Module.__call__`: our function, except for `torch.compile`.

    Dynamo compiles `model.__call__` and checks whether it is PyTorch's own, so it gets that one.
    Only when an optimized module calls itself, from Dynamo's own file, is it a call like others.
    `torch.fx` removes this while it traces a model, and restores it afterwards.
    """

    def __init__(self, original: Any, watched: Any) -> None:
        self.original = original
        self.watched = watched

    def __get__(self, module: Any, owner: Any = None) -> Any:
        frame = sys._getframe(1)
        caller = frame.f_globals.get("__name__", "")
        if module is None:
            return self if caller.startswith("torch.fx") else self.original
        if caller.startswith("torch._dynamo") and frame.f_code.co_name != "__call__":
            return MethodType(self.original, module)
        return MethodType(self.watched, module)

    def __call__(self, module: Any, *arguments: Any, **options: Any) -> Any:
        return self.original(module, *arguments, **options)


def put_around_calls(torch: Any, wrap: Wrap) -> None:
    """Wrap the call of every module in `wrap`, around earlier wrappers."""
    module_type = torch.nn.Module
    present = vars(module_type)["__call__"]
    is_watched = isinstance(present, _WatchedCall)
    original, inner = (present.original, present.watched) if is_watched else (present, present)
    outer = shielded(torch, functools.wraps(original)(wrap(inner)))
    module_type.__call__ = _WatchedCall(original, outer)
