"""What goes in or out of a forward pass beside its arguments and results: tensors with a graph.

Chunks are computed without a graph and repeated with one later. A tensor that the script finds
elsewhere (in an attribute, a list, a cache) would have no gradient then, and one that comes from
elsewhere would be differentiated once for each chunk.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import weakref
from collections.abc import Collection, Iterator
from typing import Any

import torch


class GraphWatch:
    """Tells whether a graph is still there when its results are gone."""

    def __init__(self, tensors: Collection[torch.Tensor]) -> None:
        self._marks: list[weakref.ref[_Mark]] = []
        self.leaves: list[torch.Tensor] = []
        """The tensors that gradients are summed in."""
        self.has_functions = False
        """Whether somebody else than PyTorch has written a part of the backward pass."""
        for node in _nodes(tensors):
            variable = getattr(node, "variable", None)
            if variable is not None:
                self.leaves.append(variable)
                continue
            function = getattr(node, "_forward_cls", None)
            if function is not None and not _is_of_torch(function):
                self.has_functions = True
            # It lives as long as the node does.
            mark = _Mark()
            node.register_prehook(mark)
            self._marks.append(weakref.ref(mark))

    def is_held(self) -> bool:
        """Whether somebody holds on to a part of the graph."""
        if all(mark() is None for mark in self._marks):
            return False
        gc.collect()
        return any(mark() is not None for mark in self._marks)


def _is_of_torch(function: Any) -> bool:
    return f"{function.__module__}.".startswith("torch.")


@contextlib.contextmanager
def hooks_noted() -> Iterator[list[Any]]:
    """Note the tensors of a graph that get hooks meanwhile."""
    noted: list[Any] = []
    kind: Any = torch.Tensor
    original = kind.register_hook

    @functools.wraps(original)
    def register_hook(tensor: Any, hook: Any) -> Any:
        if tensor.grad_fn is not None:
            noted.append(hook)
        return original(tensor, hook)

    kind.register_hook = register_hook
    try:
        yield noted
    finally:
        kind.register_hook = original


class _Mark:
    def __call__(self, gradients: Any) -> None:
        """Change nothing."""


def _nodes(tensors: Collection[torch.Tensor]) -> Iterator[Any]:
    seen: set[Any] = set()
    pending = [each.grad_fn for each in tensors if each.grad_fn is not None]
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        yield node
        pending += [each for each, _ in node.next_functions if each is not None]
