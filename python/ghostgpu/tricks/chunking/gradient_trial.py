"""Tries whether a model's backward pass, too, can be run in chunks.

A forward pass that treats samples one by one can have a backward pass that does not, where PyTorch
does not derive it: functions that normalise a gradient over the batch, hooks, auxiliary losses that
are added in backward. Gradients of the sum of all samples must be the sums of those of its parts,
and 0 if those of the results are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Callable, ContextManager, Optional

import torch
from torch import nn

Results = list[tuple[torch.Tensor, Optional[torch.Tensor]]]
"""Results that have gradients; losses with their weight in the loss of all samples."""

Run = Callable[[int, int, Sequence[Any]], Results]
"""Computes the results of the samples from one to another, from these leaves of the arguments."""


class GradientTrial:
    """Compares gradients of a few samples with those of each half."""

    def __init__(
        self,
        run: Run,
        around: Callable[[], ContextManager[None]],
        stand_ins: list[nn.Parameter],
        leaves: Sequence[Any],
        wanted: frozenset[int],
    ) -> None:
        """`around`: a context for backward passes.

        `wanted`: the positions of the leaves that get gradients.
        """
        self._run = run
        self._around = around
        self._inputs = [
            leaf.detach().clone().requires_grad_() if at in wanted else leaf
            for at, leaf in enumerate(leaves)
        ]
        inputs = [self._inputs[at] for at in sorted(wanted)]
        self._summed: list[torch.Tensor] = [*stand_ins, *inputs]

    def problem(self, half: int, tolerance: float, compares: bool) -> Optional[str]:
        """Why chunks would have other gradients; None if they have the same.

        `compares`: whether there are values; in a rehearsal only the memory is taken.
        """
        try:
            self._add(0, half, 0.0)
            if any(self._largest(compares)):
                return "its backward pass adds gradients of its own to those of its results"
            self._clear()
            self._add(0, 2 * half, 1.0)
            largest = self._largest(compares)
            self._add(0, half, -1.0)
            self._add(half, 2 * half, -1.0)
            left = self._largest(compares)
        finally:
            self._clear()
        # Some gradients are rounding alone, such as those of the bias of keys.
        least = tolerance * max(largest, default=0.0)
        if any(off > tolerance * max(each, least) for off, each in zip(left, largest)):
            return "its gradients depend on which samples it gets together"
        return None

    def _add(self, begin: int, end: int, factor: float) -> None:
        results = self._run(begin, end, self._inputs)
        roots = [result for result, _ in results]
        seeds = [_seed(*each, begin / (end - begin), factor) for each in results]
        if roots:
            with self._around():
                torch.autograd.backward(roots, seeds)

    def _largest(self, compares: bool) -> list[float]:
        """The largest element of each gradient; 0 if that is not a number."""
        found = [0.0] * len(self._summed)
        by_device: dict[torch.device, dict[int, torch.Tensor]] = {}
        for at, each in enumerate(self._summed):
            if each.grad is None:
                continue
            gradient = each.grad.coalesce().values() if each.grad.is_sparse else each.grad
            if gradient.numel():
                norm = torch.linalg.vector_norm(gradient, math.inf).to(torch.float32)
                by_device.setdefault(each.device, {})[at] = norm
        for norms in by_device.values():
            stacked = torch.stack(list(norms.values()))
            if compares:
                for at, value in zip(norms, stacked.tolist()):
                    found[at] = value if math.isfinite(value) else 0.0
        return found

    def _clear(self) -> None:
        for each in self._summed:
            each.grad = None


def _seed(
    result: torch.Tensor, weight: Optional[torch.Tensor], begin: float, factor: float
) -> torch.Tensor:
    """A gradient for a result: its weight if it is a loss, else one that differs by element.

    `begin`: where its rows begin among those of all samples, in numbers of its rows.
    """
    if weight is not None:
        return weight * factor
    count = result[0].numel() if len(result) else 0
    first = round(begin * len(result))
    within = _numbers(0, count, result).cos()
    rows = _numbers(first, first + len(result), result).mul(0.7).cos().mul(factor)
    pattern: torch.Tensor = rows.unsqueeze(1) * within
    return pattern.to(result.dtype).reshape(result.shape)


def _numbers(begin: int, end: int, like: torch.Tensor) -> torch.Tensor:
    return torch.arange(begin, end, dtype=torch.float32, device=like.device)
