"""Which of PyTorch's functions and methods the agent wraps to follow values.

All that compute tensors or write to them, according to PyTorch's own schemas, but not those that
return a view. There is no list of operators, so what a new release adds is followed too.
"""

from __future__ import annotations

import re
from types import BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType
from typing import Any, Iterable, NamedTuple

_OPERATOR = re.compile(
    r"__(r?|i)(add|sub|mul|div|truediv|floordiv|mod|pow|matmul|and|or|xor|lshift|rshift)__"
    r"|__(eq|ne|lt|le|gt|ge|neg|invert|abs|getitem|setitem)__"
)
_IN_PLACE_OPERATOR = re.compile(r"__i(?!nvert)\w+__|__setitem__")

_OF_OPERATOR = {
    **{"neg": "neg", "invert": "bitwise_not", "and": "bitwise_and", "or": "bitwise_or"},
    **{"xor": "bitwise_xor", "truediv": "div", "floordiv": "floor_divide", "mod": "remainder"},
}
"""Operator names of methods that Python calls by another name."""

_READ = frozenset(("equal", "allclose"))
"""Functions that read a truth value from the card themselves."""

_COPIED = frozenset(
    (
        *("to", "cuda", "cpu", "type", "type_as", "clone", "contiguous", "tolist", "new_tensor"),
        *("bool", "byte", "char", "short", "int", "long", "half", "bfloat16", "float", "double"),
        *("tensor", "as_tensor", "asarray", "scalar_tensor"),
    )
)
"""Copies, which may cross between host and card: `known_copies` wraps them."""

_MAY_COPY = frozenset(("reshape", "reshape_as", "flatten", "ravel", "positive"))
"""Views according to their schemas, but copies where no view is possible."""


_UNCOUNTED = re.compile(r"_foreach_zero_|_fused_\w+_")
"""Functions that write to lists of tensors and, on a card, do not count that in their versions."""


class Followed(NamedTuple):
    """A function or method to wrap."""

    owner: Any
    name: str
    operator: str
    """Its name among PyTorch's operators."""
    is_in_place: bool


def followed_functions(torch: Any) -> Iterable[Followed]:
    """Everything to wrap, in the order in which Python looks it up."""
    makes, writes = _by_effect(torch)
    tensor = torch.Tensor
    for name in dir(tensor):
        method = getattr(tensor, name, None)
        if _OPERATOR.fullmatch(name):
            in_place = _IN_PLACE_OPERATOR.fullmatch(name) is not None
            yield Followed(tensor, name, _operator_of(name), in_place)
        elif isinstance(method, (MethodDescriptorType, WrapperDescriptorType)):
            if _is_in_place(name, writes):
                yield Followed(tensor, name, name, True)
            elif name in makes and name not in _COPIED:
                yield Followed(tensor, name, name, False)
    modules = (torch, torch._C._nn, torch.nn.functional, torch.special, torch.linalg, torch.fft)
    # Last, what only PyTorch's own Python code calls, such as the body of `torch.einsum`.
    for module in (*modules, torch._C._VariableFunctions):
        for name in dir(module):
            function = getattr(module, name, None)
            if not isinstance(function, BuiltinFunctionType):
                continue
            operator = function.__name__
            if _is_in_place(operator, writes):
                yield Followed(module, name, operator, True)
            elif operator in makes and operator not in _COPIED:
                yield Followed(module, name, operator, False)


def is_uncounted(operator: str) -> bool:
    """Whether an operator writes to lists of tensors without counting that in their versions."""
    return _UNCOUNTED.fullmatch(operator) is not None


def _is_in_place(name: str, writes: set[str]) -> bool:
    return name.endswith("_") and not name.endswith("__") and name in writes


def _operator_of(name: str) -> str:
    plain = re.sub(r"^__(?:[ri](?=[a-z]{2,}__)(?!nvert))?|__$", "", name)
    return _OF_OPERATOR.get(plain, plain)


def _by_effect(torch: Any) -> tuple[set[str], set[str]]:
    """Names of operators that compute new tensors, and of those that write to an argument."""
    makes, writes = set(_READ | _MAY_COPY), set()
    for schema in torch._C._jit_get_all_schemas():
        namespace, _, name = schema.name.partition("::")
        if namespace != "aten":
            continue
        if is_uncounted(name):
            writes.add(name)
        for result in schema.returns:
            if "Tensor" not in str(result.type):
                continue
            alias = result.alias_info
            if alias is None:
                makes.add(name)
            elif alias.is_write:
                writes.add(name)
    return makes, writes
