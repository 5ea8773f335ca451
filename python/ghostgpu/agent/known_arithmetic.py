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

    def _follow(self, original: Any, result: Any, arguments: Any, options: Any) -> None:
        if options.get("out") is not None:
            return
        host_arguments = self._known.on_host(arguments)
        host_options = {name: self._known.on_host(value) for name, value in options.items()}
        self._known.learn(result, original(*host_arguments, **host_options))
