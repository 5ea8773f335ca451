"""What runs of a trial start from, and leave untouched: generators, buffers, attributes, modes."""

from __future__ import annotations

import collections
import contextlib
import copy
import random
from collections.abc import Iterator
from typing import Any, Callable, Optional

import torch
from torch import nn

from .attributes import PlainAttributes
from .findings import Model
from .nested import holds_tensors
from .surroundings import Buffers, RandomState

_CONTAINERS = (list, dict, set, collections.deque)


class TrialState:
    """Has every run of a trial begin with the same state."""

    def __init__(self, model: Model) -> None:
        self.random = RandomState.now(model.cards)
        self.buffers = Buffers(model.module, None)
        self.attributes = PlainAttributes(model.module)
        self._parameters = [(module, dict(module._parameters)) for module in model.module.modules()]
        own = [
            (f"{path}.{name}" if path else name, value)
            for path, module in model.module.named_modules()
            for name, value in vars(module).items()
            if name not in _OF_EVERY_MODULE
        ]
        self._containers = [
            (path, value, copy.copy(value)) for path, value in own if type(value) in _CONTAINERS
        ]
        self._generators = [
            (path, value, state)
            for path, value in own
            for state in [_state_of(value)]
            if state is not None
        ]

    def changed_container(self) -> Optional[str]:
        """A list or the like that a run has changed, and that holds tensors.

        A dictionary may be a cache that it fills; lists of numbers are notes.
        """
        for path, container, before in self._containers:
            if isinstance(container, dict):
                has_changed = any(container.get(key) is not each for key, each in before.items())
            else:
                has_changed = not _holds_the_same(container, before)
            if has_changed and holds_tensors([*_held(container), *_held(before)]):
                return path
        return None

    def moved_generator(self) -> Optional[str]:
        """A generator of the model's own that a run has drawn from."""
        for path, generator, before in self._generators:
            if repr(_state_of(generator)) != repr(before):
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
        for _, generator, state in self._generators:
            _set_state(generator, state)
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
    held = [_held(each) for each in (container, before)]
    return len(held[0]) == len(held[1]) and all(one is other for one, other in zip(*held))


def _held(container: Any) -> list[Any]:
    return list(container.values() if isinstance(container, dict) else container)


def _state_of(value: Any) -> Any:
    """What a generator of PyTorch, Python or NumPy would draw next; None for anything else."""
    if isinstance(value, torch.Generator):
        return value.get_state().tolist()
    if isinstance(value, random.Random):
        return value.getstate()
    kind = type(value)
    if kind.__module__.startswith("numpy.random") and hasattr(value, "bit_generator"):
        return value.bit_generator.state
    return None


def _set_state(generator: Any, state: Any) -> None:
    if isinstance(generator, torch.Generator):
        generator.set_state(torch.tensor(state, dtype=torch.uint8))
    elif isinstance(generator, random.Random):
        generator.setstate(state)
    else:
        generator.bit_generator.state = state


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
