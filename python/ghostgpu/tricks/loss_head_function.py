"""Sum of cross-entropies over chunks of tokens, computing the gradients of each immediately."""

from __future__ import annotations

from typing import Any, Optional

import torch
import torch.nn.functional as F

from .accumulation_weights import MEAN, SUM, Reduction


def chunked_loss(
    tokens: torch.Tensor,
    weight: torch.Tensor,
    bias: Optional[torch.Tensor],
    labels: torch.Tensor,
    ignore_index: int,
    chunks: int,
    is_mean: bool,
) -> torch.Tensor:
    """The sum over all tokens that are not ignored, or their mean."""
    function: Any = _ChunkedLoss
    result: torch.Tensor = function.apply(
        tokens, weight, bias, labels, ignore_index, chunks, is_mean
    )
    return result


class _ChunkedLoss(torch.autograd.Function):
    """The loss is a scalar, so its gradients are known in forward, up to a factor."""

    @staticmethod
    def forward(
        ctx: Any,
        tokens: torch.Tensor,
        weight: torch.Tensor,
        bias: Optional[torch.Tensor],
        labels: torch.Tensor,
        ignore_index: int,
        chunks: int,
        is_mean: bool,
    ) -> torch.Tensor:
        wants = ctx.needs_input_grad[:3]
        total = torch.zeros((), dtype=_exact(tokens.dtype), device=tokens.device)
        of_tokens = torch.zeros_like(tokens) if wants[0] else None
        of_weight = torch.zeros_like(weight) if wants[1] else None
        of_bias = torch.zeros_like(bias) if bias is not None and wants[2] else None
        size = max(1, -(-len(tokens) // chunks))
        for begin in range(0, len(tokens), size):
            piece, right = tokens[begin : begin + size], labels[begin : begin + size]
            logits = F.linear(piece, weight, bias)
            computed = logits.dtype
            # Under autocast, cross-entropy casts its input like this.
            logits = logits.to(_exact(computed))
            total += F.cross_entropy(logits, right, ignore_index=ignore_index, reduction="sum")
            if not any(wants):
                continue
            gradient = logits.softmax(-1)
            del logits
            counts = (right != ignore_index).unsqueeze(-1)
            at = torch.where(right == ignore_index, 0, right).unsqueeze(-1)
            gradient.scatter_add_(1, at, torch.full_like(at, -1, dtype=gradient.dtype))
            gradient = gradient.mul_(counts).to(computed)
            if of_tokens is not None:
                of_tokens[begin : begin + size] = gradient @ weight.to(computed)
            if of_weight is not None:
                of_weight += gradient.T @ piece.to(computed)
            if of_bias is not None:
                of_bias += gradient.sum(0)
            del gradient
        count = (labels != ignore_index).sum() if is_mean else None
        ctx.labels = labels.numel()
        ctx.save_for_backward(of_tokens, of_weight, of_bias, count)
        return total if count is None else total / count

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator, unused-ignore]
    def backward(ctx: Any, factor: torch.Tensor) -> Any:
        *gradients, count = ctx.saved_tensors
        if count is not None:
            factor = factor / count.clamp(min=1)  # where no label counts, all gradients are 0
        scaled = [None if each is None else each * factor.to(each.dtype) for each in gradients]
        return (*scaled, None, None, None, None)

    @staticmethod
    def reduction(node: Any, output: int) -> Reduction:
        """What this loss is, for whoever accumulates it (`accumulation_weights`)."""
        count = node.saved_tensors[-1]
        return Reduction(SUM) if count is None else Reduction(MEAN, count, node.labels)


def _exact(dtype: torch.dtype) -> torch.dtype:
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
