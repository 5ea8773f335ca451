"""What a loss is: a mean, over how much, or a sum. Read from the graph behind it.

The nodes of PyTorch's own loss functions keep how they reduce, and those of negative
log-likelihoods also what they divided by: the targets that are not ignored, by the weights of their
classes. Functions of other tricks that stand for a whole loss say it themselves, in a static method
`reduction(node, output)`. Nothing is read back from a card.
"""

from __future__ import annotations

from collections.abc import Iterator
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
    means: list[Reduction] = []
    kinds: set[str] = set()
    is_scaled = False
    for node, output in _ways(loss):
        name = node.name()
        reduction = getattr(node, "_saved_reduction", None)
        own = _told_by(node, output)
        if own is not None:
            kinds.add(own.kind)
            means += [own] if own.count is not None else []
        elif reduction is not None:
            kinds.add({_MEAN_REDUCTION: MEAN, _SUM_REDUCTION: SUM}.get(reduction, UNKNOWN))
            if reduction == _MEAN_REDUCTION and hasattr(node, "_saved_total_weight"):
                targets = node._saved_target.numel()
                means.append(Reduction(MEAN, node._saved_total_weight, targets))
        elif name.startswith("Mean"):
            kinds.add(MEAN)
        elif name.startswith("Sum"):
            kinds.add(SUM)
        elif name.startswith(_PASSED):
            is_scaled = is_scaled or name.startswith("Mul")
            is_scaled = is_scaled or (name.startswith("Div") and not _divides_by(node, divisor))
        else:
            kinds.add(UNKNOWN)
    if len(means) == 1:
        return means[0]
    if MEAN in kinds:
        return Reduction(MEAN)
    return Reduction(SUM if kinds == {SUM} and not is_scaled else UNKNOWN)


def loss_nodes(loss: Any) -> list[Any]:
    """The nodes in which the terms of a loss are reduced."""
    return [node for node, _ in _ways(loss) if not _is_passed(node)]


def _ways(loss: Any) -> Iterator[tuple[Any, int]]:
    """The nodes behind a loss up to where its terms are reduced, and which of their outputs."""
    pending, seen = [(loss.grad_fn, loss.output_nr)], 0
    while pending and seen < _FAR:
        node, output = pending.pop()
        seen += 1
        if node is None:
            continue
        yield node, output
        if _is_passed(node):
            pending += node.next_functions


def _is_passed(node: Any) -> bool:
    reduces = getattr(node, "_saved_reduction", None) is not None
    return not reduces and bool(node.name().startswith(_PASSED))


def _told_by(node: Any, output: int) -> Optional[Reduction]:
    function = getattr(node, "_forward_cls", None)
    tell = getattr(function, "reduction", None) if _is_ours(function) else None
    told: Optional[Reduction] = tell(node, output) if tell is not None else None
    return told


def _is_ours(function: Any) -> bool:
    return getattr(function, "__module__", "").startswith(__package__)


def _divides_by(node: Any, divisor: float) -> bool:
    """Whether a division is one by a number on the host: this one, or 1."""
    other = getattr(node, "_saved_other", None)
    return other is not None and not other.is_cuda and other.dim() == 0 and other in (1, divisor)
