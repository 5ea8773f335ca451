"""Puts Python functions around those that a script calls: PyTorch's functions and methods.

For what `kernels` cannot see, or would make too slow: these run above PyTorch's dispatcher, once
for each call from Python, and not for the calls that PyTorch makes itself.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any, Callable

from ..tricks.dynamo_shield import shielded
from .guard import install

Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Makes the function to call instead of one that it is given."""


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
        # Where to find it again: `pickle` and `torch.fx` look a function up by its name.
        replacement.__module__, replacement.__qualname__ = owner.__name__, name
        tell_torchscript(torch, original, replacement)
    setattr(owner, name, replacement)


def tell_torchscript(torch: Any, original: Any, replacement: Any) -> None:
    """Make the replacement stand for the same operator as the original in compiled functions."""
    builtins = torch.jit._builtins
    # Without a table there is nothing to do: it is made of what the modules hold at that time.
    if builtins._builtin_table is not None:
        operator = builtins._find_builtin(original)
        if operator is not None:
            builtins._register_builtin(replacement, operator)
