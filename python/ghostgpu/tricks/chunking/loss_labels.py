"""Reads from the graph of a loss which labels it is the mean over.

A few samples show that a loss is a mean over labels, but not which label is ignored unless some of
these samples have it, nor how classes are weighted. PyTorch's own losses keep both for backward.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Optional

import torch

from ..accumulation_weights import loss_nodes
from .losses import Weighting
from .nested import Nested

_MEAN = 1
"""PyTorch's number for a mean (`torch.nn._reduction`)."""


def weighting_of(
    loss: torch.Tensor, arguments: Nested, leaves: list[Any], is_cut: frozenset[int], reads: bool
) -> Optional[Weighting]:
    """What `loss` is the mean over, if that is one of its graph's negative log-likelihoods.

    `leaves`: the arguments that it was computed from. `reads`: whether values can be compared; in a
    rehearsal there are only shapes.
    """
    found = [node for node in loss_nodes(loss) if hasattr(node, "_saved_ignore_index")]
    if len(found) != 1 or found[0]._saved_reduction != _MEAN:
        return None
    (node,) = found
    target = node._saved_target
    ignored = node._saved_ignore_index
    ignored -= (ignored >= 1 << 63) << 64  # torch hands it out as an unsigned number
    for at in sorted(is_cut):
        labels = leaves[at]
        if labels.dtype != torch.int64:
            continue
        for kind, candidate in _forms(labels, ignored):
            if candidate.numel() != target.numel():
                continue
            if not reads or torch.equal(candidate.reshape(-1), target.reshape(-1)):
                path = arguments.paths[at]
                return Weighting(kind, path, ignored, node._saved_weight)
    return None


def _forms(labels: torch.Tensor, ignored: int) -> Iterator[tuple[str, torch.Tensor]]:
    """How a model may hand labels to its loss."""
    yield "labels", labels
    if labels.dim() > 1:
        yield "shifted labels", labels[..., 1:]
        end = torch.full_like(labels[..., :1], ignored)
        yield "shifted labels", torch.cat([labels[..., 1:], end], -1)
