"""Follows known values where one process spreads a tensor over its cards: `DataParallel` and
`torch.nn.parallel.comm`.

PyTorch makes these copies in C++, where the wrappers of `known_copies` do not see them. Without
this, a mask or a length sent from the host would be unknown to every replica of a model. Weights
are broadcast by another function, several at once, and are not followed.
"""

from __future__ import annotations

from typing import Any, Callable

from ..calls import put_around
from .host_values import Call
from .known_values import KnownValues


class KnownSpreading:
    """Propagates known values to the copies and pieces of a tensor on several cards."""

    def __init__(self, torch: Any, known: KnownValues) -> None:
        self._torch = torch
        self._known = known

    def install(self) -> None:
        """Wrap the functions that `torch.nn.parallel.comm` calls."""
        functions = self._torch._C
        for name, copy in (("_broadcast", _whole), ("_scatter", _pieces)):
            if hasattr(functions, name):
                put_around(self._torch, functions, name, self._spreads(copy))
        for name, copy in (("_broadcast_out", _whole), ("_scatter_out", _pieces)):
            if hasattr(functions, name):
                put_around(self._torch, functions, name, self._spreads_into(copy))

    def _spreads(self, copy: Callable[..., Any]) -> Callable[..., Any]:
        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            def spread(tensor: Any, *arguments: Any) -> Any:
                results = original(tensor, *arguments)
                self._known.attempt(self._note, copy, tensor, results)
                return results

            return spread

        return wrap

    def _spreads_into(self, copy: Callable[..., Any]) -> Callable[..., Any]:
        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            def spread_into(tensor: Any, out: Any, *arguments: Any) -> Any:
                results = original(tensor, out, *arguments)
                # Their previous values are overwritten, whether or not the new ones are known.
                for result in results:
                    self._known.forget(result)
                self._known.attempt(self._note, copy, tensor, results)
                return results

            return spread_into

        return wrap

    def _note(self, copy: Callable[..., Any], tensor: Any, results: Any) -> None:
        if tensor.layout is not self._torch.strided or tensor.requires_grad:
            return
        shapes = [tuple(result.shape) for result in results]
        known = self._known
        known.made(results, Call(known.host, copy, (known.argument(tensor), shapes), {}))


def _whole(tensor: Any, shapes: list[tuple[int, ...]]) -> list[Any]:
    """The whole tensor on every card."""
    return [tensor for _ in shapes]


def _pieces(tensor: Any, shapes: list[tuple[int, ...]]) -> Any:
    """One piece per card, split along the dimension in which they are smaller than the whole."""
    cut = [
        dimension
        for dimension, size in enumerate(tensor.shape)
        if any(shape[dimension] != size for shape in shapes)
    ]
    if not cut:
        return [tensor]
    return tensor.split([shape[cut[0]] for shape in shapes], dim=cut[0])
