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
from .kernels import can_replace_factories
from .known_values import KnownValues

_OPERATORS = (
    *("__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__"),
    *("__floordiv__", "__mod__", "__truediv__", "__neg__"),
)
_BOTH = ("add", "sub", "mul", "diff", "sum")
"""Methods of tensors, and functions of `torch`."""
_FUNCTIONS = ("cat", "concat", "stack")
_FACTORIES = ("ones", "zeros", "full", "arange", "ones_like", "zeros_like", "full_like")


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
        if not can_replace_factories(torch):
            for name in _FACTORIES:
                put_around(torch, torch, name, self._made)

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
        host_arguments = self._on_host(arguments)
        host_options = {name: self._on_host(value) for name, value in options.items()}
        self._known.learn(result, original(*host_arguments, **host_options))

    def _on_host(self, value: Any) -> Any:
        """An argument with every tensor on the card replaced by its values.

        Raises ValueError if one of them is not known.
        """
        if isinstance(value, self._torch.Tensor):
            if not value.is_cuda:
                return value
            values = self._known.of(value)
            if values is None:
                raise ValueError("not known")
            return values
        if type(value) in (list, tuple):
            return type(value)(self._on_host(each) for each in value)
        return value

    def _made(self, original: Callable[..., Any]) -> Callable[..., Any]:
        known = self._known
        kinds = known.kinds_from_factory(original.__name__)
        tensor_type = self._torch.Tensor

        def learn(result: Any, arguments: Any, options: Any) -> None:
            # The result's own type: where none was asked for, it may be the script's default.
            host = {**options, "device": "cpu", "dtype": result.dtype, "pin_memory": False}
            known.learn(result, original(*known.stand_ins(arguments), **host))

        def made(*arguments: Any, **options: Any) -> Any:
            result = original(*arguments, **options)
            if (
                type(result) is tensor_type
                and result.is_cuda
                and known.can_hold(result, kinds=kinds)
                and options.get("out") is None
            ):
                known.attempt(learn, result, arguments, options)
            return result

        return made
