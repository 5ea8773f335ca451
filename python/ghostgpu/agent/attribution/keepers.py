"""Which variable keeps memory from step to step: a list that grows, a sum with its whole graph.

Looked at are the variables of the script's own functions and modules, and the attributes of the
objects in them. Nothing else is followed: what is kept further away has no short name anyhow.
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
"""A collection of fewer tensors is no history."""

_MOST = 100_000

_DEEPEST = 8
"""Collections in collections are followed so far: a chain of pairs is as deep as it has steps."""

_ADDING = (
    r"\s*(\.(append|appendleft|extend|insert|add|update|setdefault)\s*\(|\[[^]]*\]\s*=[^=]|\+=)"
)
"""What adds to a variable, behind its name."""


def kept_by_variables(torch: Any, frame: FrameType | None) -> Iterator[tuple[str, list[Any]]]:
    """Where tensors are kept, in words, with the tensors: in the variables of a frame and above."""
    seen: set[int] = set()
    for file, name, value in _variables(frame):
        for full_name, each in _with_attributes(torch, name, value):
            if id(each) in seen:
                continue
            if isinstance(each, torch.Tensor):
                # By itself it is one tensor; with a graph it may keep all steps before it.
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
            # Before Python 3.13 this is a copy that stays with the frame, and would keep what the
            # script lets go of. At the top of a module it is the module's own.
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
    # Parameters and buffers of models have owners of their own; but a model may keep results, too.
    if isinstance(value, (torch.Tensor, type, ModuleType)):
        return
    if isinstance(value, torch.nn.Module):
        # What PyTorch itself keeps in a module begins with an underscore.
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
    """What a collection holds, or a function in its defaults and the variables around it."""
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
