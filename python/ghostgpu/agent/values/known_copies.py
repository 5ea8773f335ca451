"""Follows known values through copies: to the card, on it, and back from it.

PyTorch's kernel for converting copies sees all of them, but a Python function in front of it would
cost several microseconds for each of the hundreds of weights and activations that autocast converts
in a step. So this wraps the methods that Python calls (`ids.to("cuda")`, `mask.bool()`,
`lengths.tolist()`), which scripts and models use and autocast does not.
"""

from __future__ import annotations

from typing import Any, Callable

from ..calls import put_around
from .host_values import Call
from .known_values import KnownValues
from .plausible import Plausible

_COPIES = (
    *("to", "cuda", "cpu", "type", "type_as", "clone", "contiguous"),
    *("bool", "byte", "char", "short", "int", "long", "half", "bfloat16", "float", "double"),
)
"""Tensor methods whose result has the tensor's values, converted to its own dtype."""
_FUNCTIONS = ("clone",)
_FROM_HOST = ("tensor", "as_tensor", "asarray", "scalar_tensor")
"""Functions of `torch` that make a tensor, possibly on the card, from host data."""

MAX_FILLED_BYTES = 256 << 20
"""Larger copies to the host (such as weights to be saved) stay zeros: filling them takes time."""
MAX_FILLED_PINNED_BYTES = 1 << 20
"""Larger copies to pinned memory are activations offloaded until backward. Nothing reads their
values, and filling them would use this machine's memory."""


class KnownCopies:
    """Propagates known values where Python copies tensors."""

    def __init__(
        self,
        torch: Any,
        known: KnownValues,
        plausible: Plausible,
        on_unknown_read: Callable[[], object],
        on_sent: Callable[[Any], object],
    ) -> None:
        self._torch = torch
        self._known = known
        self._plausible = plausible
        self._on_unknown_read = on_unknown_read
        self._on_sent = on_sent

    def install(self) -> None:
        """Wrap the methods and functions that copy."""
        torch = self._torch
        for name in _COPIES:
            put_around(torch, torch.Tensor, name, self._copied)
        for name in _FUNCTIONS:
            put_around(torch, torch, name, self._copied)
        put_around(torch, torch.Tensor, "tolist", self._listed)
        put_around(torch, torch.Tensor, "new_tensor", self._made_like)
        for name in _FROM_HOST:
            put_around(torch, torch, name, self._made)

    def _copied(self, original: Callable[..., Any]) -> Callable[..., Any]:
        known = self._known
        tensor_type = self._torch.Tensor

        def copied(tensor: Any, *arguments: Any, **options: Any) -> Any:
            result = original(tensor, *arguments, **options)
            # Fast path: nearly always the same tensor.
            if result is tensor or type(result) is not tensor_type:
                return result
            if result.is_cuda:
                if not tensor.is_cuda:
                    self._on_sent(result)
                if not result.requires_grad:
                    known.attempt(self._pass_on, tensor, result)
            elif tensor.is_cuda:
                known.attempt(self.bring_back, tensor, result)
            return result

        return copied

    def _pass_on(self, tensor: Any, result: Any) -> None:
        known = self._known
        if result.layout is self._torch.sparse_coo and tensor.layout is self._torch.sparse_coo:
            # A graph's edges are mostly sent as one sparse tensor.
            self._pass_on(tensor._indices(), result._indices())
            self._pass_on(tensor._values(), result._values())
            return
        if not known.can_hold(result) or known.has_entry(result):
            return
        # Parameters are not followed: most are never initialised, and all of them change.
        if type(tensor) is not self._torch.Tensor:
            return
        shown = known.shown(tensor)
        if shown is None:
            self._plausible.copied(tensor, result)
            return
        known.made(result, Call(known.host, _itself, (shown,), {}))

    def bring_back(self, tensor: Any, result: Any) -> None:
        """A tensor on the card was copied to `result` on the host: fill in its values."""
        if not tensor.is_cuda or result.is_cuda:
            return
        values = self._known.of(tensor)
        if values is not None:
            # Through `data`: autograd would record the copy as an operation of the script.
            result.data.copy_(values)
        elif result.numel():
            if _is_filled(result):
                self._plausible.fill(result.data, tensor)
            self._on_unknown_read()

    def _listed(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def tolist(tensor: Any) -> Any:
            # Called even if the values are known: copying a strided tensor allocates on the card.
            result = original(tensor)
            if not tensor.is_cuda:
                return result
            values = self._known.attempt(self._known.of, tensor)
            if values is None and tensor.numel():
                self._on_unknown_read()
                values = self._torch.zeros(tensor.shape, dtype=tensor.dtype, device="cpu")
                self._known.attempt(self._plausible.fill, values, tensor)
            return result if values is None else original(values)

        return tolist

    def _made(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def made(*arguments: Any, **options: Any) -> Any:
            result = original(*arguments, **options)
            self._note_made(result, *arguments, **options)
            return result

        return made

    def _made_like(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def new_tensor(tensor: Any, *arguments: Any, **options: Any) -> Any:
            result = original(tensor, *arguments, **options)
            self._note_made(result, *arguments, **options)
            return result

        return new_tensor

    def _note_made(self, result: Any, *arguments: Any, **options: Any) -> None:
        if type(result) is not self._torch.Tensor or not result.is_cuda:
            return
        self._on_sent(result)
        if self._known.can_hold(result):
            # Passed by position, or by the name that the function has for it.
            named = options.get("data", options.get("obj", options.get("s")))
            data = arguments[0] if arguments else named
            self._known.attempt(self._learn_data, result, data)

    def _learn_data(self, result: Any, data: Any) -> None:
        if isinstance(data, self._torch.Tensor):
            self._pass_on(data, result)
        else:
            values = self._torch.tensor(data, dtype=result.dtype, device="cpu")
            self._known.learn(result, values)


def _is_filled(result: Any) -> bool:
    """Whether a copy on the host is filled with ordinary values instead of zeros."""
    size = result.nbytes
    return bool(
        size <= MAX_FILLED_PINNED_BYTES or (size <= MAX_FILLED_BYTES and not result.is_pinned())
    )


def _itself(values: Any) -> Any:
    return values
