"""Puts the losses of chunks together that a model computes itself.

Such a loss is a mean over something: the samples, or the labels that are not ignored, which may
be shifted by one. What it is, is found out once by comparing the loss of a few samples with the
losses of its halves (`examination`). Labels are ignored if they are negative: -100 in transformers,
-1 elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Optional

import torch

from ..accumulation_weights import MEAN, SUM, Reduction
from .nested import Nested


@dataclass(frozen=True)
class Weighting:
    """What a loss is the mean of: nothing (it is a sum), samples, or labels."""

    kind: str
    """`sum`, `samples`, `labels` or `shifted labels`."""
    labels: Optional[str] = None
    """The path of the labels among the arguments."""

    def count(self, arguments: Nested, leaves: list[Any], samples: int) -> Any:
        """The weight of a chunk, before it is divided by that of all."""
        if self.kind in ("sum", "samples"):
            return samples
        labels = leaves[arguments.paths.index(self.labels or "")]
        counted = labels[..., 1:] if self.kind == "shifted labels" else labels
        return (counted >= 0).sum()

    def reduction(self, arguments: Nested, leaves: list[Any]) -> Reduction:
        """The same, as others know it who weigh whole batches."""
        if self.kind == "sum":
            return Reduction(SUM)
        if self.kind == "samples":
            return Reduction(MEAN)
        labels = leaves[arguments.paths.index(self.labels or "")]
        return Reduction(MEAN, self.count(arguments, leaves, 0), labels.numel())

    def total(self, counts: list[Any]) -> Any:
        """The counts of all chunks together."""
        return sum(counts[1:], counts[0])

    def weight(self, count: Any, total: Any, like: torch.Tensor) -> torch.Tensor:
        """What the loss of a chunk is multiplied with."""
        if self.kind == "sum":
            return torch.ones((), dtype=like.dtype, device=like.device)
        if isinstance(count, int):
            # Filled on the card: a number that is copied there waits for the card.
            return torch.full((), count / total, dtype=like.dtype, device=like.device)
        exact = count.to(dtype=torch.float64, device=like.device)
        share: torch.Tensor = (exact / total).to(like.dtype)
        return share


def candidates(arguments: Nested, is_cut: frozenset[int]) -> Iterator[Weighting]:
    """What a loss may be the mean of, likely ones first."""
    paths = [
        arguments.paths[at]
        for at in sorted(is_cut)
        if not arguments.leaves[at].is_floating_point()
        and arguments.leaves[at].dtype != torch.bool
        and not arguments.leaves[at].is_complex()
    ]
    for path in sorted(paths, key=lambda path: ("label" not in path, "target" not in path)):
        yield Weighting("labels", path)
        if arguments.leaves[arguments.paths.index(path)].dim() > 1:
            yield Weighting("shifted labels", path)
    yield Weighting("samples")
    yield Weighting("sum")


def combined(losses: list[torch.Tensor], weights: list[torch.Tensor]) -> torch.Tensor:
    """The loss of the whole batch. A chunk without labels has a loss of 0/0, and no weight."""
    terms = [
        torch.where(weight == 0, torch.zeros_like(loss), loss * weight)
        for loss, weight in zip(losses, weights)
    ]
    return torch.stack(terms).sum()
