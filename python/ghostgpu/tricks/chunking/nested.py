"""Takes nested arguments and results apart, and puts them together again with other leaves.

Dictionaries and what behaves like them (the `ModelOutput` and `BatchEncoding` of transformers),
lists, tuples, named tuples and dataclasses are opened; everything else is a leaf.
"""

from __future__ import annotations

import copy
import dataclasses
import enum
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, Callable

import torch
from torch.nn.utils.rnn import PackedSequence

_Build = Callable[[Iterator[Any]], Any]


@dataclasses.dataclass(frozen=True)
class Nested:
    """The leaves of a value in order, where each stands, and how to build the like of it."""

    paths: tuple[str, ...]
    leaves: tuple[Any, ...]
    _build: _Build

    def with_leaves(self, leaves: list[Any]) -> Any:
        """The same structure around other leaves."""
        return self._build(iter(leaves))

    def tensors(self) -> list[int]:
        """The positions of the leaves that are tensors."""
        return [at for at, leaf in enumerate(self.leaves) if isinstance(leaf, torch.Tensor)]

    def without_tensors(self) -> Nested:
        """The same form, which keeps no tensor alive."""
        leaves = tuple(None if isinstance(leaf, torch.Tensor) else leaf for leaf in self.leaves)
        return Nested(self.paths, leaves, self._build)

    def with_empty_tensors(self) -> Nested:
        """The same form with tensors of the same types and devices that hold nothing."""
        return Nested(self.paths, tuple(_hollow(leaf) for leaf in self.leaves), self._build)


def flatten(value: Any, name: str = "") -> Nested:
    """Open `value`, which is called `name` in the paths of its leaves."""
    paths: list[str] = []
    leaves: list[Any] = []
    build = _open(value, name, paths, leaves)
    return Nested(tuple(paths), tuple(leaves), build)


def flatten_arguments(arguments: tuple[Any, ...], options: Mapping[str, Any]) -> Nested:
    """Open the arguments of a call; building gives `(arguments, options)`."""
    paths: list[str] = []
    leaves: list[Any] = []
    positional = [
        _open(value, f"argument {at + 1}", paths, leaves) for at, value in enumerate(arguments)
    ]
    named = {name: _open(value, name, paths, leaves) for name, value in options.items()}

    def build(new: Iterator[Any]) -> Any:
        values = tuple(each(new) for each in positional)
        return values, {name: each(new) for name, each in named.items()}

    return Nested(tuple(paths), tuple(leaves), build)


def _open(value: Any, path: str, paths: list[str], leaves: list[Any]) -> _Build:
    children = _children(value)
    if children is None:
        paths.append(path)
        leaves.append(value)
        return next
    items, build = children
    builders = [_open(item, f"{path}{step}", paths, leaves) for step, item in items]

    def build_all(new: Iterator[Any]) -> Any:
        return build([each(new) for each in builders])

    return build_all


def _children(value: Any) -> tuple[list[tuple[str, Any]], Callable[[list[Any]], Any]] | None:
    """What is inside of a value, and how one with other contents is made; None for a leaf."""
    kind = type(value)
    if isinstance(value, Mapping):
        keys = list(value)
        make = _mapping(value, keys)
        return [(f"[{key!r}]", value[key]) for key in keys], make
    if isinstance(value, (torch.Size, PackedSequence)):
        return None
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        names = [f".{name}" for name in value._fields]
        return list(zip(names, value)), lambda new: kind(*new)
    if isinstance(value, (list, tuple)):
        return [(f"[{at}]", item) for at, item in enumerate(value)], kind
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        fields = [(f".{name}", getattr(value, name)) for name in names]
        return fields, _dataclass(value, names)
    return None


# What is built from must not keep the leaves of the original alive: they may be large.


def _mapping(original: Any, keys: list[Any]) -> Callable[[list[Any]], Any]:
    if dataclasses.is_dataclass(original):  # a `ModelOutput`, whose fields are its items
        kind: Any = type(original)
        return lambda values: kind(**dict(zip(keys, values)))
    if not isinstance(original, MutableMapping):
        return lambda values: dict(zip(keys, values))
    shell = copy.copy(original)
    for key in keys:
        shell[key] = None

    def make(values: list[Any]) -> Any:
        new = copy.copy(shell)
        for key, value in zip(keys, values):
            new[key] = value
        return new

    return make


def _dataclass(original: Any, names: list[str]) -> Callable[[list[Any]], Any]:
    def filled(shell: Any, values: list[Any]) -> Any:
        new = copy.copy(shell)
        for name, value in zip(names, values):
            object.__setattr__(new, name, value)  # frozen ones, too
        return new

    shell = filled(original, [None] * len(names))
    return lambda values: filled(shell, values)


def _hollow(leaf: Any) -> Any:
    return leaf.new_empty(0) if isinstance(leaf, torch.Tensor) else leaf


_PLAIN = (bool, int, float, complex, str, bytes, enum.Enum, slice, type)
_TORCH = (torch.dtype, torch.device, torch.Size, torch.layout, torch.memory_format)


def is_plain(leaf: Any) -> bool:
    """Whether a leaf says the same for every chunk of a batch, whatever is done with it."""
    return leaf is None or isinstance(leaf, (*_PLAIN, *_TORCH)) or callable(leaf)


def holds_tensors(leaf: Any, depth: int = 3) -> bool:
    """Whether an object that we cannot open has tensors somewhere inside."""
    if isinstance(leaf, torch.Tensor):
        return True
    if depth == 0 or is_plain(leaf):
        return isinstance(leaf, torch.nn.Module)
    if isinstance(leaf, Mapping):
        inside: list[Any] = list(leaf.values())
    elif isinstance(leaf, (list, tuple, set)):
        inside = list(leaf)
    else:
        names = [name for kind in type(leaf).__mro__ for name in getattr(kind, "__slots__", ())]
        slots = [getattr(leaf, name, None) for name in names]
        inside = [*getattr(leaf, "__dict__", {}).values(), *slots]
    return any(holds_tensors(each, depth - 1) for each in inside)
