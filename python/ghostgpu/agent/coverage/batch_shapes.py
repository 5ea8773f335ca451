"""How large the batches of a loader are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_MAX_DEPTH = 4

Shape = tuple[tuple[int, ...], ...]
"""The shapes of all tensors in a batch, in order."""


def shape_of(torch: Any, batch: Any) -> Shape:
    """The shape of a batch; empty if it contains no tensor."""
    return tuple(tuple(tensor.shape) for tensor in _tensors(torch, batch, 0))


def elements(shape: Shape) -> int:
    """How many elements a batch has; its memory follows from that."""
    total = 0
    for sizes in shape:
        count = 1
        for size in sizes:
            count *= size
        total += count
    return total


def in_words(shape: Shape) -> str:
    """The largest tensor, as `16×512`."""
    largest = max(shape, key=lambda sizes: elements((sizes,)), default=())
    return "×".join(str(size) for size in largest) or "one number"


def _tensors(torch: Any, value: Any, depth: int) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    if depth >= _MAX_DEPTH:
        return []
    if isinstance(value, Mapping):
        parts = list(value.values())
    elif isinstance(value, (list, tuple)):
        parts = list(value)
    elif hasattr(value, "__dict__") and not isinstance(value, type):
        parts = list(vars(value).values())  # batches of graphs, `NestedTensor`s and the like
    else:
        return []
    return [tensor for part in parts for tensor in _tensors(torch, part, depth + 1)]
