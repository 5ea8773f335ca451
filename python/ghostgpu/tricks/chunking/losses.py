"""Puts the losses of chunks together that a model computes itself.

Such a loss is a mean over something: the samples, the labels that are not ignored, which may be
shifted by one, or what a mask counts. What it is, is found out once by comparing the loss of a few
samples with the losses of its halves (`examination`). Which labels are ignored, and how classes are
weighted, is read from the loss's graph (`loss_labels`); where that does not tell, labels are
ignored if they are negative: -100 in transformers, -1 elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Optional

import torch

from ..accumulation_weights import MEAN, SUM, Reduction
from .nested import Nested


@dataclass(frozen=True)
class Weighting:
    """What a loss is the mean of: nothing (it is a sum), samples, or labels."""

    kind: str
    """`sum`, `samples`, `labels`, `shifted labels` or `mask`."""
    labels: Optional[str] = None
    """The path of the labels, or of the mask, among the arguments."""
    ignored: Optional[int] = None
    """The label that does not count; None: all that are negative."""
    of_classes: Optional[torch.Tensor] = field(default=None, compare=False)
    """What a label of each class counts; None: one."""

    def count(self, arguments: Nested, leaves: list[Any], samples: int) -> Any:
        """The weight of a chunk, before it is divided by that of all."""
        if self.kind in ("sum", "samples"):
            return samples
        return self._counts(leaves[arguments.paths.index(self.labels or "")]).sum()

    def counts(self, arguments: Nested, leaves: list[Any], samples: int) -> torch.Tensor:
        """The weight of each sample by itself."""
        if self.kind in ("sum", "samples"):
            return torch.ones(samples, dtype=torch.float64)
        counted = self._counts(leaves[arguments.paths.index(self.labels or "")])
        return counted.reshape(samples, -1).to(torch.float64).sum(1).cpu()

    def _counts(self, labels: torch.Tensor) -> torch.Tensor:
        if self.kind == "mask":
            return labels
        counted = labels[..., 1:] if self.kind == "shifted labels" else labels
        keeps = counted >= 0 if self.ignored is None else counted != self.ignored
        if self.of_classes is None:
            return keeps
        return self.of_classes[torch.where(keeps, counted, 0)] * keeps

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


def candidates(arguments: Nested, is_cut: frozenset[int], padding: int = 0) -> Iterator[Weighting]:
    """What a loss may be the mean of, likely ones first."""
    of_labels = list(_of_labels(arguments, is_cut))
    yield from of_labels
    yield Weighting("samples")
    yield Weighting("sum")
    for each in of_labels:
        yield Weighting(each.kind, each.labels, padding)


def padding_of(model: torch.nn.Module) -> int:
    """The token that stands where sequences are shorter."""
    for module in model.modules():
        if isinstance(module, torch.nn.Embedding) and module.padding_idx is not None:
            return module.padding_idx
    return 0


def masks(arguments: Nested, leaves: list[Any], is_cut: frozenset[int]) -> Iterator[Weighting]:
    """Those of the arguments that are 0 or 1 everywhere: a loss may be a mean over what is 1."""
    for at in sorted(is_cut):
        leaf = leaves[at]
        if not leaf.is_complex() and bool(((leaf == 0) | (leaf == 1)).all()):
            yield Weighting("mask", arguments.paths[at])


def _of_labels(arguments: Nested, is_cut: frozenset[int]) -> Iterator[Weighting]:
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


def combined(losses: list[torch.Tensor], weights: list[torch.Tensor]) -> torch.Tensor:
    """The loss of the whole batch. A chunk without labels has a loss of 0/0, and no weight."""
    terms = [
        torch.where(weight == 0, torch.zeros_like(loss), loss * weight)
        for loss, weight in zip(losses, weights)
    ]
    return torch.stack(terms).sum()
