"""Plain attributes of a model that its forward pass sets: counters, schedules, kept tensors.

Every chunk starts from the same ones, as the whole batch would, and one more pass is one update. If
chunks leave different ones behind, they depend on the samples.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from typing import Any, Optional

import torch
from torch import nn

_NUMBERS = (bool, int, float, complex, str, type(None))
_NOT_OURS = ("_parameters", "_buffers", "_modules", "training")
_ABSENT = object()


class PlainAttributes:
    """The numbers and tensors in a model's attributes at one moment."""

    def __init__(self, model: nn.Module, names: Optional[Collection[str]] = None) -> None:
        """`names`: those to look at; None: all."""
        self._model = model
        self.names = names
        self._values = dict(self._present())
        # Weights that hooks compute have a graph, and nobody writes to them.
        self._copies = {
            path: (value._version, value.detach().clone())
            for path, value in self._values.items()
            if isinstance(value, torch.Tensor)
            and value.grad_fn is None
            and not value.is_inference()
        }

    def _present(self) -> Iterator[tuple[str, Any]]:
        if self.names is not None:
            for path in self.names:
                owner, name = self._owner(path)
                yield path, vars(owner).get(name, _ABSENT)
            return
        for path, module in self._model.named_modules():
            for name, value in vars(module).items():
                if name not in _NOT_OURS and isinstance(value, (*_NUMBERS, torch.Tensor)):
                    yield f"{path}.{name}" if path else name, value

    def _owner(self, path: str) -> tuple[nn.Module, str]:
        owner, _, name = path.rpartition(".")
        return self._model.get_submodule(owner), name

    def changed(self) -> dict[str, Any]:
        """What attributes are now, of those that are no longer what they were."""
        return {
            path: value.detach().clone() if isinstance(value, torch.Tensor) else value
            for path, value in self._changed()
        }

    def _changed(self) -> list[tuple[str, Any]]:
        present = dict(self._present())
        gone = [(path, _ABSENT) for path in self._values if path not in present]
        return gone + [
            (path, value) for path, value in present.items() if not self._is_same(path, value)
        ]

    def _is_same(self, path: str, value: Any) -> bool:
        before = self._values.get(path, _ABSENT)
        if isinstance(value, torch.Tensor):
            is_known = path in self._copies
            return value is before and (not is_known or value._version == self._copies[path][0])
        return type(value) is type(before) and bool(value == before or value != value)

    def restore(self) -> None:
        """Put them back."""
        for path, _ in self._changed():
            owner, name = self._owner(path)
            before = self._values.get(path, _ABSENT)
            if before is _ABSENT:
                owner.__dict__.pop(name, None)
                continue
            owner.__dict__[name] = before
            if path in self._copies and before._version != self._copies[path][0]:
                with torch.no_grad():
                    before.copy_(self._copies[path][1])
                self._copies[path] = (before._version, self._copies[path][1])


def first_difference(one: dict[str, Any], other: dict[str, Any], compares: bool) -> Optional[str]:
    """The attribute in which what two passes have left differs, if any.

    `compares`: whether tensors have values; in a rehearsal there are only shapes.
    """
    for path in [*one, *(path for path in other if path not in one)]:
        first, second = one.get(path, _ABSENT), other.get(path, _ABSENT)
        if not isinstance(first, torch.Tensor) or not isinstance(second, torch.Tensor):
            is_number = isinstance(first, _NUMBERS) and isinstance(second, _NUMBERS)
            if not (is_number and (first == second or not compares)):
                return path
        elif first.shape != second.shape or (compares and not torch.equal(first, second)):
            return path
    return None


@contextlib.contextmanager
def attributes_set(model: nn.Module, values: Optional[PlainAttributes]) -> Iterator[None]:
    """Run with these attributes, and leave those that are there now untouched."""
    if values is None:
        yield
        return
    present = PlainAttributes(model, values.names)
    values.restore()
    try:
        yield
    finally:
        present.restore()
