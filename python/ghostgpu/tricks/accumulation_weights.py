"""What a loss is: a mean, over how much, or a sum. Read from the graph behind it.

The nodes of PyTorch's own loss functions keep how they reduce, and those of negative
log-likelihoods also what they divided by: the targets that are not ignored, by the weights of their
classes. Nothing is computed, and nothing is read back from a card.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

MEAN, SUM, UNKNOWN = "mean", "sum", "unknown"

_MEAN_REDUCTION = 1
_SUM_REDUCTION = 2
"""PyTorch's numbers for them (`torch.nn._reduction`)."""

_PASSED = ("Add", "Sub", "Neg", "Mul", "Div", "ToCopy", "View", "Reshape", "Squeeze", "Clone")
"""What stands between a loss and where it is reduced: terms, factors and casts."""

_FAR = 100
"""After so many nodes it is given up."""


@dataclass(frozen=True)
class Reduction:
    """How a loss came about."""

    kind: str
    count: Optional[Any] = None
    """What a mean was divided by, as a tensor; None if it is over samples, as far as is known."""
    targets: int = 1
    """How many of them there were, ignored ones included."""


def reduction_of(loss: Any, divisor: float = 1) -> Reduction:
    """Read it from the graph of `loss`, before its backward pass.

    `divisor`: what whoever runs the loop has divided the script's loss by.
    """
    means: list[Any] = []
    kinds: set[str] = set()
    is_scaled = False
    pending, seen = [loss.grad_fn], 0
    while pending and seen < _FAR:
        node = pending.pop()
        seen += 1
        if node is None:
            continue
        name = node.name()
        reduction = getattr(node, "_saved_reduction", None)
        if reduction is not None:
            kinds.add({_MEAN_REDUCTION: MEAN, _SUM_REDUCTION: SUM}.get(reduction, UNKNOWN))
            if reduction == _MEAN_REDUCTION and hasattr(node, "_saved_total_weight"):
                means.append(node)
        elif name.startswith("Mean"):
            kinds.add(MEAN)
        elif name.startswith("Sum"):
            kinds.add(SUM)
        elif name.startswith(_PASSED):
            is_scaled = is_scaled or name.startswith("Mul")
            is_scaled = is_scaled or (name.startswith("Div") and not _divides_by(node, divisor))
            pending += [following for following, _ in node.next_functions]
        else:
            kinds.add(UNKNOWN)
    if len(means) == 1:
        node = means[0]
        return Reduction(MEAN, node._saved_total_weight, node._saved_target.numel())
    if MEAN in kinds:
        return Reduction(MEAN)
    return Reduction(SUM if kinds == {SUM} and not is_scaled else UNKNOWN)


def _divides_by(node: Any, divisor: float) -> bool:
    """Whether a division is one by a number on the host: this one, or 1."""
    other = getattr(node, "_saved_other", None)
    return other is not None and not other.is_cuda and other.dim() == 0 and other in (1, divisor)
