"""Wraps PyTorch's functions and methods where scripts call them from Python.

For calls that `kernels` cannot see or would slow down too much: these wrappers run above PyTorch's
dispatcher, once per call from Python, and not for calls that PyTorch makes internally.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any, Callable

from ..tricks.dynamo_shield import shielded
from .guard import install

Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Takes the original function and returns its replacement."""


def put_around(torch: Any, owner: Any, name: str, wrap: Wrap) -> None:
    """Replace the function or method `name` of `owner`, a module or class, by `wrap` of it.

    Only for functions that PyTorch implements in C++: TorchScript compiles those in Python from
    their source, which a wrapper does not have.
    """
    unknown = "values and sizes that depend on it are not known"
    install(f"call of {name}", unknown, _put_around, torch, owner, name, wrap)


def _put_around(torch: Any, owner: Any, name: str, wrap: Wrap) -> None:
    original = getattr(owner, name)
    replacement = shielded(torch, functools.wraps(original)(wrap(original)))
    if isinstance(owner, ModuleType):
        # `pickle` and `torch.fx` look a function up by its module and name.
        replacement.__module__, replacement.__qualname__ = owner.__name__, name
        tell_torchscript(torch, original, replacement)
    setattr(owner, name, replacement)


def tell_torchscript(torch: Any, original: Any, replacement: Any) -> None:
    """Make the replacement stand for the same operator as the original in compiled functions."""
    builtins = torch.jit._builtins
    # If there is no table yet, it will be built from the modules, which hold the replacement.
    if builtins._builtin_table is not None:
        operator = builtins._find_builtin(original)
        if operator is not None:
            builtins._register_builtin(replacement, operator)
