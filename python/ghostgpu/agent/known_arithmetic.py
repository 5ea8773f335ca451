"""Follows known values through arithmetic that a script does in Python.

Models work out position numbers on the card (`torch.arange(n, device="cuda") + past`), and ask
afterwards whether they rise by one. `transformers` decides by the answer whether sequences are
packed, and with it how much memory its attention takes.

Kernels of `known_values` sit below PyTorch's dispatcher, where a number in `ids - 1` has already
lost what makes it a number. So this sits above: in the functions and operators that Python calls.
An operator that works on activations pays one look at their type and size.
"""

from __future__ import annotations

from typing import Any, Callable

from .calls import put_around
from .known_values import KnownValues

_OPERATORS = (
    *("__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__"),
    *("__floordiv__", "__mod__", "__truediv__", "__neg__"),
)
_BOTH = ("add", "sub", "mul", "diff", "sum")
"""Methods of tensors, and functions of `torch`."""
_FUNCTIONS = ("cat", "concat", "stack")
_IN_PLACE = ("add_", "sub_", "mul_", "__iadd__", "__isub__", "__imul__")
"""Followed for whole numbers only: counters, such as the batches that a batch norm has seen."""
_FILLED = ("zero_", "fill_")
"""The same, known whatever was there before."""


class KnownArithmetic:
    """Computes on the host what arithmetic on the card would have given."""

    def __init__(self, torch: Any, known: KnownValues) -> None:
        self._torch = torch
        self._known = known

    def install(self) -> None:
        """Wrap what Python calls."""
        torch = self._torch
        for owner, names in (
            (torch.Tensor, _OPERATORS),
            (torch.Tensor, _BOTH),
            (torch, _BOTH),
            (torch, _FUNCTIONS),
            (torch._C._nn, ("pad",)),  # what `torch.nn.functional.pad` calls
        ):
            for name in names:
                put_around(torch, owner, name, self._followed)
        for name in _IN_PLACE:
            put_around(torch, torch.Tensor, name, self._followed_in_place)
        for name in _FILLED:
            put_around(torch, torch.Tensor, name, self._filled)

    def _followed(self, original: Callable[..., Any]) -> Callable[..., Any]:
        known = self._known
        tensor_type = self._torch.Tensor

        def followed(*arguments: Any, **options: Any) -> Any:
            result = original(*arguments, **options)
            # Exactly a tensor: an operator may give NotImplemented, a subclass has its own rules.
            if type(result) is tensor_type and known.may_follow(result):
                known.attempt(self._follow, original, result, arguments, options)
            return result

        return followed

    def _followed_in_place(self, original: Callable[..., Any]) -> Callable[..., Any]:
        known = self._known

        def followed(tensor: Any, *arguments: Any, **options: Any) -> Any:
            if tensor.dtype not in known.kinds or not known.may_follow(tensor):
                return original(tensor, *arguments, **options)
            # Read before it is written: a write makes what is known of a tensor stale.
            before = known.attempt(known.on_host, [tensor, *arguments])
            result = original(tensor, *arguments, **options)
            if before is not None:
                host, *others = before
                known.attempt(lambda: known.learn(tensor, original(host, *others, **options)))
            return result

        return followed

    def _filled(self, original: Callable[..., Any]) -> Callable[..., Any]:
        known = self._known

        def filled(tensor: Any, *arguments: Any, **options: Any) -> Any:
            result = original(tensor, *arguments, **options)
            if tensor.dtype in known.kinds and known.may_follow(tensor):
                known.attempt(self._fill, original, tensor, arguments, options)
            return result

        return filled

    def _fill(self, original: Any, tensor: Any, arguments: Any, options: Any) -> None:
        host = self._torch.empty(tensor.shape, dtype=tensor.dtype)
        given, named = self._known.on_host(arguments), self._known.on_host(list(options.values()))
        self._known.overwrite(tensor, original(host, *given, **dict(zip(options, named))))

    def _follow(self, original: Any, result: Any, arguments: Any, options: Any) -> None:
        if options.get("out") is not None:
            return
        host_arguments = self._known.on_host(arguments)
        host_options = {name: self._known.on_host(value) for name, value in options.items()}
        self._known.learn(result, original(*host_arguments, **host_options))
