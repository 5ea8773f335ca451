"""What runs of a trial start from, and leave untouched: generators, buffers, attributes, modes."""

from __future__ import annotations

import collections
import contextlib
import copy
from collections.abc import Iterator
from typing import Any, Callable, Optional

from torch import nn

from .attributes import PlainAttributes
from .findings import Model
from .surroundings import Buffers, RandomState

_CONTAINERS = (list, dict, set, collections.deque)


class TrialState:
    """Has every run of a trial begin with the same state."""

    def __init__(self, model: Model) -> None:
        self.random = RandomState.now(model.cards)
        self.buffers = Buffers(model.module, None)
        self.attributes = PlainAttributes(model.module)
        self._parameters = [(module, dict(module._parameters)) for module in model.module.modules()]
        self._containers = [
            (f"{path}.{name}" if path else name, value, copy.copy(value))
            for path, module in model.module.named_modules()
            for name, value in vars(module).items()
            if type(value) in _CONTAINERS and name not in _OF_EVERY_MODULE
        ]

    def changed_container(self) -> Optional[str]:
        """A list or the like that a run has changed; a dictionary may be a cache that it fills."""
        for path, container, before in self._containers:
            if isinstance(container, dict):
                if any(container.get(key) is not value for key, value in before.items()):
                    return path
            elif not _holds_the_same(container, before):
                return path
        return None

    def restore(self) -> None:
        """Undo what a run has changed."""
        for module, parameters in self._parameters:
            if any(module._parameters.get(name) is not each for name, each in parameters.items()):
                module._parameters.clear()
                module._parameters.update(parameters)
        for _, container, before in self._containers:
            _refill(container, before)
        self.buffers.restore()
        self.attributes.restore()
        self.random.restore()

    @contextlib.contextmanager
    def undone(self) -> Iterator[None]:
        """Leave no trace of what runs inside."""
        try:
            yield
        finally:
            self.restore()


_OF_EVERY_MODULE = frozenset(vars(nn.Module()))
"""Attributes such as hooks and parameters."""


def _refill(container: Any, before: Any) -> None:
    """Have a container hold what it did."""
    if _holds_the_same(container, before):
        return
    container.clear()
    if isinstance(container, (dict, set)):
        container.update(before)
    else:
        container.extend(before)


def _holds_the_same(container: Any, before: Any) -> bool:
    if isinstance(container, set):
        return bool(container == before)
    held = [list(each.values() if isinstance(each, dict) else each) for each in (container, before)]
    return len(held[0]) == len(held[1]) and all(one is other for one, other in zip(*held))


@contextlib.contextmanager
def in_evaluation(model: nn.Module, which: Callable[[nn.Module], bool]) -> Iterator[None]:
    """Run some modules of a model as in evaluation."""
    flags = [(module, module.training) for module in model.modules() if which(module)]
    for module, _ in flags:
        module.training = False
    try:
        yield
    finally:
        for module, flag in flags:
            module.training = flag


def is_dropout(module: nn.Module) -> bool:
    """Whether this is one of PyTorch's layers that only drop."""
    return isinstance(module, nn.modules.dropout._DropoutNd)


def is_anything(module: nn.Module) -> bool:
    """Whether this is a module."""
    return True
