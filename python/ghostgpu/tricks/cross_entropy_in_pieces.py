"""Cross-entropy of logits that are there, without copies of them.

PyTorch keeps the logarithm of all probabilities for backward, computes its gradient, and then that
of the logits: three times as much as the logits, in float32 under autocast. Here only the logits
are kept, with one number for each label, and their gradient is computed piece by piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Callable

import torch

from .accumulation_weights import MEAN, SUM, Reduction
from .refusal import Refused

LARGE = 1 << 24
"""The least bytes of logits that are worth it."""


def is_possible(logits: Any, labels: Any, options: dict[str, Any]) -> bool:
    """Whether these are large logits with a class for each label, and a sum or mean is wanted."""
    if type(logits) is not torch.Tensor or type(labels) is not torch.Tensor:
        return False
    if _is_transformed() or torch.are_deterministic_algorithms_enabled():
        return False
    is_large = logits.numel() * logits.element_size() >= LARGE
    has_classes = logits.dim() >= 2 and labels.shape == (logits.shape[0], *logits.shape[2:])
    is_plain = (
        options.get("weight") is None
        and options.get("size_average") is None
        and options.get("reduce") is None
        and not options.get("label_smoothing")
        and options.get("reduction", "mean") in ("mean", "sum")
    )
    is_differentiated = torch.is_grad_enabled() and logits.requires_grad
    has_indices = labels.dtype == torch.int64 and logits.is_floating_point()
    return is_large and is_differentiated and is_plain and has_classes and has_indices


def _is_transformed() -> bool:
    """Whether somebody else than autograd in backward differentiates, or compiles."""
    forward_ad: Any = torch.autograd.forward_ad
    is_dual = forward_ad._current_level >= 0
    has_transforms: bool = torch._C._are_functorch_transforms_active()
    return torch.compiler.is_compiling() or has_transforms or is_dual


def cross_entropy(
    logits: torch.Tensor,
    labels: torch.Tensor,
    pieces: int,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> torch.Tensor:
    """The mean or sum over all labels that are not ignored."""
    function: Any = _CrossEntropy
    loss: torch.Tensor = function.apply(logits, labels, ignore_index, reduction == "mean", pieces)
    kind = logits.device.type
    # Where autocast is on, PyTorch would compute this in float32.
    return loss if torch.is_autocast_enabled(kind) else loss.to(logits.dtype)


def replacement(original: Callable[..., Any], pieces: int, note: Callable[[], None]) -> Any:
    """What stands in the place of `torch.nn.functional.cross_entropy`."""
    names = ("weight", "size_average", "ignore_index", "reduce", "reduction", "label_smoothing")

    def replaced(input: Any, target: Any, *rest: Any, **options: Any) -> Any:
        given = {**dict(zip(names, rest)), **options}
        if not is_possible(input, target, given):
            return original(input, target, *rest, **options)
        note()
        return cross_entropy(
            input,
            target,
            pieces,
            given.get("ignore_index", -100),
            given.get("reduction", "mean"),
        )

    return replaced


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        logits: torch.Tensor,
        labels: torch.Tensor,
        ignore_index: int,
        is_mean: bool,
        pieces: int,
    ) -> torch.Tensor:
        exact = _exact(logits.dtype)
        total = torch.zeros((), dtype=exact, device=logits.device)
        logarithms = torch.empty(labels.shape, dtype=exact, device=logits.device)
        for rows in _pieces(len(logits), pieces):
            piece, right = logits[rows].to(exact), labels[rows]
            of_all = piece.logsumexp(1)
            at = torch.where(right == ignore_index, 0, right).unsqueeze(1)
            losses = of_all - piece.gather(1, at).squeeze(1)
            total += torch.where(right == ignore_index, 0, losses).sum()
            logarithms[rows] = of_all
            del piece
        count = (labels != ignore_index).sum()
        ctx.save_for_backward(logits, labels, logarithms, count)
        ctx.ignore_index, ctx.is_mean, ctx.pieces = ignore_index, is_mean, pieces
        return total / count if is_mean else total

    @staticmethod
    def backward(ctx: Any, factor: torch.Tensor) -> Any:
        if torch.is_grad_enabled():
            raise Refused(
                "The script differentiates the gradients of a cross-entropy (create_graph=True), "
                "which its computation in pieces does not keep.",
                "leave out loss-head",
            )
        logits, labels, logarithms, count = _saved(ctx)
        exact = _exact(logits.dtype)
        factor = factor.to(exact)
        if ctx.is_mean:
            factor = factor / count
        gradient = torch.empty_like(logits)
        for rows in _pieces(len(logits), ctx.pieces):
            right = labels[rows].unsqueeze(1)
            # Only in float16 and bfloat16 is there a copy of the piece already.
            shifted = logits[rows].to(exact) - logarithms[rows].unsqueeze(1)
            piece = shifted.exp_()
            at = torch.where(right == ctx.ignore_index, 0, right)
            piece.scatter_add_(1, at, torch.full_like(at, -1, dtype=exact))
            piece.mul_(torch.where(right == ctx.ignore_index, 0, factor))
            gradient[rows] = piece
            del piece, shifted
        return gradient, None, None, None, None

    @staticmethod
    def reduction(node: Any, output: int) -> Reduction:
        """What this loss is, for whoever accumulates it (`accumulation_weights`)."""
        _, labels, _, count = node.saved_tensors
        return Reduction(MEAN, count, labels.numel()) if node.is_mean else Reduction(SUM)


def _saved(ctx: Any) -> Any:
    try:
        return ctx.saved_tensors
    except RuntimeError as error:
        if "inplace operation" not in str(error):
            raise
    raise Refused(
        "The script writes over logits after it has computed their cross-entropy, whose "
        "computation in pieces needs them in backward.",
        "leave out loss-head",
    )


def _pieces(rows: int, pieces: int) -> Iterator[slice]:
    size = max(1, -(-rows // pieces))
    for begin in range(0, rows, size):
        yield slice(begin, begin + size)


def _exact(dtype: torch.dtype) -> torch.dtype:
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
