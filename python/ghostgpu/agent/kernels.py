"""Puts a Python function in front of one of PyTorch's own kernels.

The function sits below autograd, autocast and the tracing of `torch.compile`, directly above the
kernel of one backend, so that it sees what C++ calls too (a boolean index calls `nonzero`). It is
given the original kernel and decides itself when to call it.
"""

from __future__ import annotations

import warnings
from typing import Any, Callable

from .dynamo_shield import shielded

Replacement = Callable[..., Any]
"""Called as `replacement(original, *arguments, **options)`."""

_libraries: list[Any] = []
"""Registrations last as long as their `Library`."""


def put_in_front(torch: Any, operator: str, backend: str, replacement: Replacement) -> None:
    """Put `replacement` in front of the kernel of `operator` ("nonzero") for `backend` ("CUDA")."""
    library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        # PyTorch warns about any replaced kernel; here it is on purpose, and not the user's doing.
        warnings.simplefilter("ignore")
        if hasattr(torch.library, "get_kernel"):
            _register_on_backend(torch, library, operator, backend, replacement)
        else:
            _register_above_backends(torch, library, operator, backend, replacement)
    _libraries.append(library)


def _register_on_backend(
    torch: Any, library: Any, operator: str, backend: str, replacement: Replacement
) -> None:
    """torch 2.9 and newer can hand out the kernel that is being replaced."""
    kernel = torch.library.get_kernel(f"aten::{operator}", backend)

    def called(keys: Any, first: Any, *arguments: Any, **options: Any) -> Any:
        def original(*arguments: Any, **options: Any) -> Any:
            return kernel.call_boxed(keys, *arguments, **options)

        return replacement(original, _as_tensor(torch, first), *arguments, **options)

    library.impl(operator, shielded(torch, called), backend, with_keyset=True)


def _register_above_backends(
    torch: Any, library: Any, operator: str, backend: str, replacement: Replacement
) -> None:
    """Older versions: `BackendSelect` lies right above all backends and can dispatch further."""
    dispatch_key = torch._C.DispatchKey
    below = torch._C._dispatch_keyset_full_after(dispatch_key.BackendSelect)
    wanted = getattr(dispatch_key, backend)
    name, _, overload = operator.partition(".")
    operation = getattr(getattr(torch.ops.aten, name), overload or "default")

    def called(keys: Any, first: Any, *arguments: Any, **options: Any) -> Any:
        first = _as_tensor(torch, first)

        def original(*arguments: Any, **options: Any) -> Any:
            return operation.redispatch(keys & below, *arguments, **options)

        # Fake tensors call themselves CUDA tensors, but their keys tell the truth. The backend
        # that would run is the highest in the set.
        if (keys & below).highestPriorityTypeId() != wanted:
            return original(first, *arguments, **options)
        return replacement(original, first, *arguments, **options)

    library.impl(operator, shielded(torch, called), "BackendSelect", with_keyset=True)


def _as_tensor(torch: Any, value: Any) -> Any:
    """PyTorch hands a number that C++ wrapped into a tensor (the 2 of `x / 2`) over as a number."""
    if isinstance(value, torch.Tensor):
        return value
    kind = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}
    return torch.scalar_tensor(value, dtype=kind[type(value)])
