"""Whether results of a few samples are those of each half, one after the other."""

from __future__ import annotations

from typing import Any

import torch

_PIECE = 1 << 20
"""So many elements are compared at once: logits in float64 would take more than the model does."""

_MOST_FLIPPED = 0.1
"""So large a share of whole numbers may differ: the largest of two that are almost equal."""


def differs(one: Any, other: Any) -> bool:
    """Whether two results that are no tensors differ, as far as they can be compared."""
    try:
        return bool(one != other)
    except (TypeError, ValueError, RuntimeError):
        return not _are_same_arrays(one, other)


def _are_same_arrays(one: Any, other: Any) -> bool:
    shapes = getattr(one, "shape", None), getattr(other, "shape", ())
    return shapes[0] == shapes[1] and bool((one == other).all())


def rows_differ(whole: torch.Tensor, parts: list[torch.Tensor], tolerance: float) -> torch.Tensor:
    """Whether rows of the parts are others than those of the whole.

    Numbers may be off by a share of the largest one, and some of those that are no fractions by
    anything.
    """
    if whole.is_complex():
        whole, parts = torch.view_as_real(whole), [torch.view_as_real(part) for part in parts]
    all_rows = torch.split(whole, [len(part) for part in parts])
    if not whole.is_floating_point():
        count = torch.zeros((), dtype=torch.int64, device=whole.device)
        for expected, found in zip(all_rows, parts):
            count += (expected != found).sum()
        return count > _MOST_FLIPPED * whole.numel()
    largest = torch.zeros((), dtype=torch.float64, device=whole.device)
    for piece in _pieces(whole):
        finite = torch.where(piece.isfinite(), piece.double().abs(), 0.0)
        largest = torch.maximum(largest, finite.max())
    bound = largest * tolerance
    differ = torch.zeros((), dtype=torch.bool, device=whole.device)
    for rows, part in zip(all_rows, parts):
        for expected, found in zip(_pieces(rows), _pieces(part)):
            # Two that are both infinite or not a number have a distance that is not a number.
            differ |= ((expected.double() - found.double()).abs() > bound).any()
            differ |= (expected.isnan() != found.isnan()).any()
    return differ


def _pieces(tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return torch.split(tensor.reshape(-1), _PIECE)
