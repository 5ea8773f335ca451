"""Puts Python functions in front of PyTorch's own kernels.

The functions sit below autograd, autocast and the tracing of `torch.compile`, directly above the
kernel of one backend, so they also see calls made by C++ (a boolean index calls `nonzero`). Each
is passed the next one in the chain, finally the original kernel, and decides when to call it.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any, Callable

from ..tricks.dynamo_shield import shielded
from .guard import install

Replacement = Callable[..., Any]
"""Called as `replacement(original, *arguments, **options)`."""

_chains: dict[str, dict[str, list[Replacement]]] = {}
"""The functions in front of each operator's kernel, by operator and backend, last one first."""

_libraries: list[Any] = []
"""Registrations last as long as their `Library`."""


def put_in_front(
    torch: Any,
    operator: str,
    backend: str,
    replacement: Replacement,
    *,
    dtypes: frozenset[Any] | None = None,
) -> None:
    """Put `replacement` in front of the kernel of `operator` ("nonzero") for `backend` ("CUDA").

    With `dtypes`, the replacement is not called if the first tensor has another dtype. Even such
    calls take several microseconds longer because they pass through Python: do not put anything in
    front of an operator that a training step calls hundreds of times.
    """
    unknown = "values and sizes that depend on it are not known"
    part = f"kernel of {operator} for {backend}"
    install(part, unknown, _put_in_front, torch, operator, backend, replacement, dtypes)


def _put_in_front(
    torch: Any,
    operator: str,
    backend: str,
    replacement: Replacement,
    dtypes: frozenset[Any] | None,
) -> None:
    by_backend = _chains.setdefault(operator, {})
    chain = by_backend.setdefault(backend, [])
    chain.insert(0, replacement)
    # PyTorch takes one Python kernel per place: later ones join the chain of the first.
    with warnings.catch_warnings():
        # PyTorch warns about any replaced kernel; this one is intended, and not by the user.
        warnings.simplefilter("ignore")
        if hasattr(torch.library, "get_kernel"):
            if len(chain) == 1:
                _register_on_backend(torch, operator, backend, chain, dtypes)
        elif len(by_backend) == 1 and len(chain) == 1:
            _register_above_backends(torch, operator, by_backend)


def _register_on_backend(
    torch: Any,
    operator: str,
    backend: str,
    chain: list[Replacement],
    dtypes: frozenset[Any] | None,
) -> None:
    """For torch 2.9 and newer, which can return the kernel that is being replaced."""
    call = torch.library.get_kernel(f"aten::{operator}", backend).call_boxed
    schema = _operation(torch, operator)._schema.arguments
    is_tensor_first = bool(schema) and str(schema[0].type) == "Tensor"
    further_tensors = [
        index for index, argument in enumerate(schema[1:]) if str(argument.type) == "Tensor"
    ]

    tensor_type = torch.Tensor

    def called(keys: Any, first: Any, *arguments: Any, **options: Any) -> Any:
        if is_tensor_first and not isinstance(first, tensor_type):
            first = _as_tensor(torch, first)
        for index in further_tensors:
            if index < len(arguments) and not isinstance(arguments[index], tensor_type):
                before, after = arguments[:index], arguments[index + 1 :]
                arguments = (*before, _as_tensor(torch, arguments[index]), *after)
        if dtypes is not None and first.dtype not in dtypes:
            return call(keys, first, *arguments, **options)
        return _through(chain, functools.partial(call, keys))(first, *arguments, **options)

    _register(torch, operator, called, backend)


def _register_above_backends(
    torch: Any, operator: str, by_backend: dict[str, list[Replacement]]
) -> None:
    """For older versions: `BackendSelect` is right above all backends and can redispatch."""
    below = torch._C._dispatch_keyset_full_after(torch._C.DispatchKey.BackendSelect)
    operation = _operation(torch, operator)
    wants_tensor = [str(argument.type) == "Tensor" for argument in operation._schema.arguments]

    def called(keys: Any, *arguments: Any, **options: Any) -> Any:
        # `redispatch` requires tensors, also where a number was passed.
        first, *arguments_after = [
            _as_tensor(torch, argument)
            if wanted and not isinstance(argument, torch.Tensor)
            else argument
            for wanted, argument in zip(wants_tensor, arguments)
        ]
        keys_below = keys & below
        original = functools.partial(operation.redispatch, keys_below)
        # Fake tensors call themselves CUDA tensors, but their keys tell the truth. The backend
        # that would run is the highest in the set.
        chain = by_backend.get(keys_below.highestPriorityTypeId().name, [])
        return _through(chain, original)(first, *arguments_after, **options)

    _register(torch, operator, called, "BackendSelect")


def _through(chain: list[Replacement], original: Callable[..., Any]) -> Callable[..., Any]:
    for replacement in reversed(chain):
        original = functools.partial(replacement, original)
    return original


def _register(torch: Any, operator: str, function: Callable[..., Any], key: str) -> None:
    library = torch.library.Library("aten", "IMPL")
    library.impl(operator, shielded(torch, function), key, with_keyset=True)
    _libraries.append(library)


def _operation(torch: Any, operator: str) -> Any:
    name, _, overload = operator.partition(".")
    return getattr(getattr(torch.ops.aten, name), overload or "default")


def _as_tensor(torch: Any, value: Any) -> Any:
    """The tensor for a number that C++ had wrapped (the 2 in `x / 2`) and passed unwrapped."""
    kind = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}
    return torch.scalar_tensor(value, dtype=kind[type(value)], device="cpu")
