"""The tokens of a batch: how many each sample has, and the same batch with fewer.

Every tensor whose second dimension is as long as that of the tokens is cut in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_SHORTEST = 8
"""Rows with fewer integers than this are labels, not sequences."""

_MAX_DEPTH = 3


def sequence_length(torch: Any, batch: Any) -> int | None:
    """How many tokens the samples of a batch have; None if they have none or it is unclear."""
    tensors = list(named_tensors(torch, batch))
    rows = [(name, each) for name, each in tensors if _is_rows_of_tokens(torch, each)]
    # In batches of Hugging Face's collators, this is the input, whatever else there is.
    for name, tensor in rows:
        if name == "input_ids":
            return int(tensor.size(1))
    if not rows:
        return None
    name, first = rows[0]
    samples = {int(tensor.size(0)) for _, tensor in tensors if tensor.dim()}
    # If the first dimensions differ, the second may be that of the samples.
    return int(first.size(1)) if samples == {int(first.size(0))} else None


def _is_rows_of_tokens(torch: Any, tensor: Any) -> bool:
    return (
        tensor.dim() == 2
        and tensor.size(1) >= _SHORTEST
        and tensor.dtype in (torch.int64, torch.int32, torch.int16, torch.uint8)
    )


def named_tensors(torch: Any, value: Any, name: str = "", depth: int = 0) -> Iterator[Any]:
    """Every tensor in a batch, with its name in it."""
    if isinstance(value, torch.Tensor):
        yield name or "the batch", value
    elif depth >= _MAX_DEPTH:
        return
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from named_tensors(torch, each, f"{name}.{key}" if name else str(key), depth + 1)
    elif isinstance(value, (list, tuple)):
        for place, each in enumerate(value):
            yield from named_tensors(torch, each, f"{name}[{place}]", depth + 1)


def cut(torch: Any, value: Any, own: int, length: int, depth: int = 0) -> Any:
    """The same batch with sequences of `length` tokens instead of `own`."""
    if isinstance(value, torch.Tensor):
        return _cut_tensor(value, own, length)
    if depth >= _MAX_DEPTH:
        return value
    if isinstance(value, dict):
        for key in list(value):
            value[key] = cut(torch, value[key], own, length, depth + 1)
        return value
    # A mapping with an attribute `data` is Hugging Face's `BatchEncoding`.
    if isinstance(value, Mapping) and isinstance(getattr(value, "data", None), dict):
        cut(torch, value.data, own, length, depth + 1)  # type: ignore[attr-defined]
        return value
    if isinstance(value, list):
        return [cut(torch, each, own, length, depth + 1) for each in value]
    if isinstance(value, tuple):
        parts = [cut(torch, each, own, length, depth + 1) for each in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def _cut_tensor(tensor: Any, own: int, length: int) -> Any:
    for dimension in range(1, tensor.dim()):
        # An attention mask for pairs of tokens has the length twice.
        if tensor.size(dimension) == own:
            tensor = tensor.narrow(dimension, 0, length)
        elif dimension == 1:
            return tensor
    # Contiguous, as if the batch had been made with this length.
    return tensor.contiguous()
