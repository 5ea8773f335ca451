"""Several small batches make one step, with the gradient of the large batch that they are.

Each loss is weighted by what it is the mean of, and gradients are divided by the sum of that at the
end of a window. So batches of different sizes, tokens that do not count and a short last window are
exact, and nothing has to be known about a window before it ends.

Saves: nothing by itself: it lets small batches stand for a large one.
Costs: nothing over the same samples.
Numbers: the same up to rounding for losses that are sums or means over samples or tokens. Not for
losses that compare samples with each other, and not with batch norm in training mode: there only
the samples of a small batch meet. Chunking is exact for the former.
In loops that know nothing of it, and in trainers that have it themselves, what a loss is the mean
of is read from its graph (`accumulation_weights`); where that does not tell, samples count.
Conflicts: optimizer-in-backward and early-zero-grad, which let go of gradients within a window.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Optional, Sized, Union

from .trick import Trick

if TYPE_CHECKING:
    import torch
    from torch import nn

    Count = Union[int, float, torch.Tensor]


class Window:
    """The batches that make one step."""

    def __init__(self) -> None:
        self.batches = 0
        """How many there were so far, this one included."""
        self.is_last = False
        """Whether the step follows this one."""
        self._total: Any = 0
        self._unit: Optional[float] = None
        self._is_sum = False
        self._scaler: Any = None
        self._group: Any = None
        self._taken = 0
        """Batches of the pass over the loader."""
        self._has_backward = False

    def backward(
        self, loss: torch.Tensor, count: Optional[Count] = None, *, reduction: str = "mean"
    ) -> None:
        """Run the backward pass of this batch's loss, in place of `loss.backward()`.

        Args:
            loss: As the script computes it, not divided by anything.
            count: What it is the mean of: the samples, or the tokens that are not ignored. Without
                it all batches of a window have the same weight.
            reduction: `mean`, or `sum` for a loss that is one.
        """
        if reduction not in ("mean", "sum"):
            raise ValueError(f"reduction must be `mean` or `sum`, not {reduction!r}")
        is_sum = reduction == "sum"
        if self._has_backward and is_sum != self._is_sum:
            raise ValueError("the losses of a window must all be means or all be sums")
        self._is_sum, self._has_backward = is_sum, True
        if not is_sum:
            weight: Any = 1 if count is None else count
            if self._unit is None:
                self._unit = self._agreed_unit(weight, loss)
            self._total = self._total + weight
            # In units of a first batch, so that gradients are as large as they would be anyway.
            loss = loss * (weight / self._unit)
        if self._scaler is not None:
            loss = self._scaler.scale(loss)
        scaled: Any = loss
        scaled.backward()

    def _agreed_unit(self, weight: Any, loss: torch.Tensor) -> float:
        unit = max(1.0, float(weight))
        return unit if self._group is None else float(_reduced(unit, loss, self._group, "MAX"))

    def _factor(self, like: torch.Tensor) -> Any:
        """What the sum of gradients is multiplied with."""
        if self._is_sum:
            return 1.0
        import torch

        total = torch.as_tensor(self._total, dtype=torch.float64, device=like.device)
        ranks = 1
        if self._group is not None:
            import torch.distributed as distributed

            total = _reduced(total, like, self._group, "SUM")
            ranks = distributed.get_world_size(self._group)  # DDP divides by it
        assert self._unit is not None
        # A window in which nothing counts has no gradient.
        return torch.where(total > 0, self._unit * ranks / total, torch.zeros_like(total))

    def _finish(self, optimizer: Any, max_norm: Optional[float], scheduler: Any) -> None:
        import torch

        parameters = [
            each
            for group in optimizer.param_groups
            for each in group["params"]
            if each.grad is not None
        ]
        if self._scaler is not None and parameters:
            self._scaler.unscale_(optimizer)
        if parameters and not self._is_sum:
            factor = self._factor(parameters[0])
            for each in parameters:
                each.grad.mul_(factor.to(device=each.device, dtype=each.grad.dtype))
        if max_norm is not None and parameters:
            torch.nn.utils.clip_grad_norm_(parameters, max_norm)
        if self._scaler is not None and parameters:
            self._scaler.step(optimizer)
            self._scaler.update()
        else:
            optimizer.step()
        if scheduler is not None:
            scheduler.step()
        optimizer.zero_grad(set_to_none=True)
        self.batches, self._total, self._has_backward = 0, 0, False


def _reduced(value: Any, like: torch.Tensor, group: Any, operation: str) -> torch.Tensor:
    import torch
    import torch.distributed as distributed

    number = torch.as_tensor(value, dtype=torch.float64, device=like.device).clone()
    distributed.all_reduce(number, op=getattr(distributed.ReduceOp, operation), group=group)
    return number


_WINDOWS: weakref.WeakKeyDictionary[Any, Window] = weakref.WeakKeyDictionary()
"""The open window of each optimizer."""


@contextlib.contextmanager
def accumulate(
    model: nn.Module,
    optimizer: Any,
    steps: int,
    *,
    loader: Optional[Sized] = None,
    last: bool = False,
    max_norm: Optional[float] = None,
    scaler: Any = None,
    scheduler: Any = None,
) -> Iterator[Window]:
    """One batch of a window of `steps`; the optimizer steps when the last of them has ended.

    ```python
    for x, y in loader:
        with ghostgpu.accumulate(model, optimizer, steps=8, loader=loader) as window:
            window.backward(criterion(model(x), y), count=len(y))
    ```

    Args:
        model: Under DDP, gradients are exchanged in the last batch of a window alone.
        optimizer: Steps, and has its gradients set to None, at the end of a window.
        steps: How many batches make one step.
        loader: What the batches come from: its last batch ends a window, however short that is.
        last: Whether this batch ends a window anyway, where there is no loader with a length.
        max_norm: Clip the gradients of a whole window to this norm.
        scaler: A `GradScaler`; it scales each loss, and is updated once for each step.
        scheduler: A learning-rate scheduler that steps with the optimizer.
    """
    if steps < 1:
        raise ValueError(f"a window has at least one batch, not {steps}")
    window = _WINDOWS.get(optimizer)
    if window is None:
        window = _WINDOWS[optimizer] = Window()
        optimizer.zero_grad(set_to_none=True)
    window.batches += 1
    window._taken += 1
    ends_pass = loader is not None and window._taken >= len(loader)
    window.is_last = last or ends_pass or window.batches >= steps
    window._scaler = scaler
    window._group = _group(model)
    quiet = getattr(model, "no_sync", None)
    is_silent = window._group is not None and quiet is not None and not window.is_last
    try:
        # Around forward, too: DDP decides there whether it is going to exchange anything.
        with quiet() if is_silent and quiet is not None else contextlib.nullcontext():
            yield window
    except BaseException:
        window.batches -= 1
        window._taken -= 1
        raise
    if ends_pass:
        window._taken = 0
    if window.is_last:
        window._finish(optimizer, max_norm, scheduler)


def _group(model: Any) -> Any:
    """The processes that DDP exchanges gradients with; None without it."""
    from torch.nn.parallel import DistributedDataParallel

    return model.process_group if isinstance(model, DistributedDataParallel) else None


class Accumulation(Trick):
    """One step of the script's optimizers for several of its batches."""

    name = "accumulation"

    def install(self) -> None:
        from .accumulation_windows import Windows

        self._windows = Windows(self.torch, self, int(self.options["steps"]))
        self._windows.install()

    def did(self) -> str | None:
        if not self._windows.steps:
            return None
        shortest, longest = min(self._windows.lengths), max(self._windows.lengths)
        words = f"{self._windows.steps} steps with {longest} batches each"
        return words if shortest == longest else f"{words}, at least {shortest}"

    def line(self) -> str | None:
        return (
            f"with ghostgpu.accumulate(model, optimizer, steps={self.options['steps']}) as window:"
        )
