"""Which variable keeps memory from step to step: a list that grows, a sum with its whole graph.

Searched are the variables of the script's own functions and modules, and the attributes of the
objects in them. The search goes no further: anything deeper has no short name to report.
"""

from __future__ import annotations

import functools
import inspect
import linecache
import os
import re
import sys
from collections import deque
from collections.abc import Iterator
from types import FrameType, FunctionType, ModuleType
from typing import Any

from ..stacks import is_user_code

_COLLECTIONS = (list, tuple, set, deque, dict)

_FEWEST = 2
"""A collection of fewer tensors does not accumulate results of several steps."""

_MOST = 100_000

_DEEPEST = 8
"""How deep nested collections are followed: a chain of pairs is as deep as there were steps."""

_ADDING = (
    r"\s*(\.(append|appendleft|extend|insert|add|update|setdefault)\s*\(|\[[^]]*\]\s*=[^=]|\+=)"
)
"""Matches what follows a variable's name where something is added to it."""


def kept_by_variables(torch: Any, frame: FrameType | None) -> Iterator[tuple[str, list[Any]]]:
    """Variables of `frame` and its callers that keep tensors: a description, and the tensors."""
    seen: set[int] = set()
    for file, name, value in _variables(frame):
        for full_name, each in _with_attributes(torch, name, value):
            if id(each) in seen:
                continue
            if isinstance(each, torch.Tensor):
                # Without a graph it is just one tensor; with one it may keep all earlier steps.
                kind, tensors = "", [each] if each.grad_fn is not None else []
            elif isinstance(each, _COLLECTIONS):
                kind, tensors = f", a {type(each).__name__}", list(_tensors_in(torch, each))
                if len(tensors) < _FEWEST:
                    continue
            else:
                continue
            if tensors:
                seen.add(id(each))
                yield f"`{full_name}`{kind}{_line_that_adds(file, full_name)}", tensors


def _variables(frame: FrameType | None) -> Iterator[tuple[str, str, Any]]:
    while frame is not None:
        file = frame.f_code.co_filename
        if is_user_code(file):
            values = frame.f_locals
            found = list(values.items())
            # Before Python 3.13, a function's `f_locals` is a copy cached on the frame, which would
            # keep alive what the script drops. At module level it is the module's own dictionary.
            if frame.f_code.co_flags & inspect.CO_OPTIMIZED and type(values) is dict:
                values.clear()
            for name, value in found:
                yield file, name, value
            del found
        frame = frame.f_back
    for module in list(sys.modules.values()):
        place = getattr(module, "__file__", None)
        if isinstance(module, ModuleType) and isinstance(place, str) and is_user_code(place):
            for name, value in list(vars(module).items()):
                yield place, name, value


def _with_attributes(torch: Any, name: str, value: Any) -> Iterator[tuple[str, Any]]:
    yield name, value
    # A model's parameters and buffers are reported elsewhere, but it may also keep results.
    if isinstance(value, (torch.Tensor, type, ModuleType)):
        return
    if isinstance(value, torch.nn.Module):
        # PyTorch's own attributes of a module begin with an underscore.
        attributes = [each for each in vars(value).items() if not each[0].startswith("_")]
    elif _is_users_object(value):
        attributes = list(vars(value).items())
    else:
        return
    for attribute, each in attributes:
        yield f"{name}.{attribute}", each


def _is_users_object(value: Any) -> bool:
    module = sys.modules.get(type(value).__module__)
    file = getattr(module, "__file__", None)
    has_attributes = isinstance(getattr(value, "__dict__", None), dict)
    return has_attributes and isinstance(file, str) and is_user_code(file)


def _tensors_in(torch: Any, values: Any, depth: int = 0) -> Iterator[Any]:
    for each in _elements(values)[:_MOST]:
        if isinstance(each, torch.Tensor):
            if each.is_cuda and not isinstance(each, torch.nn.Parameter):
                yield each
        elif depth < _DEEPEST:
            yield from _tensors_in(torch, each, depth + 1)


def _elements(value: Any) -> list[Any]:
    """The elements of a collection, or a function's bound arguments, defaults and closure."""
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, _COLLECTIONS):
        return list(value)
    if isinstance(value, functools.partial):
        return [*value.args, *value.keywords.values()]
    if isinstance(value, FunctionType):
        defaults = [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
        return defaults + [cell.cell_contents for cell in value.__closure__ or () if _is_set(cell)]
    return []


def _is_set(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - an empty one raises
    except ValueError:
        return False
    return True


def _line_that_adds(file: str, name: str) -> str:
    """Where the script's text adds to a variable, as ` (train.py:16)`; empty if nowhere."""
    pattern = re.compile(r"(?<![\w.])" + re.escape(name) + _ADDING)
    own = re.compile(r"\bself\." + re.escape(name.rpartition(".")[2]) + _ADDING)
    for number, line in enumerate(linecache.getlines(file), 1):
        if pattern.search(line) or ("." in name and own.search(line)):
            return f" ({os.path.basename(file)}:{number})"
    return ""
