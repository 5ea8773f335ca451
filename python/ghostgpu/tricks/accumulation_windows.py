"""Accumulation in loops that know nothing of it: what belongs to a step waits for the last batch.

Until then steps, `zero_grad`, clipping, a `GradScaler`'s part and the scheduler's are left out.
Batches weigh as much as their loss is the mean of, labels or samples: each loss is multiplied by
that, and gradients are divided by the weight of all before the step. Sums stay as they are. The
last batch of a pass over a loader ends a window, however short it is. Trainers that accumulate
themselves keep their own windows (`accumulation_frameworks`).
"""

from __future__ import annotations

import functools
import math
import weakref
from collections.abc import Iterator
from typing import Any, Callable

from .accumulation_frameworks import Frameworks, Trainer
from .accumulation_weights import SUM, Reduction, reduction_of
from .trick import Trick

_SUM = object()
"""In place of the weight of a batch whose loss is a sum."""


class _Window:
    def __init__(self) -> None:
        self.batches = 0
        self.total: Any = 0
        """The weights of its batches."""
        self.is_divided = False
        self.left: dict[int, int] = {}
        """The versions of the gradients that its last batch has left, by parameter."""


class Windows:
    """The open windows of all optimizers."""

    def __init__(self, torch: Any, trick: Trick, steps: int) -> None:
        self._torch = torch
        self._hooks = trick.hooks
        self._steps = steps
        self._of: weakref.WeakKeyDictionary[Any, _Window] = weakref.WeakKeyDictionary()
        self._samples = 1
        self._weight: Any = None
        """That of the batch at hand, from its first backward pass to its step."""
        self._unit: float | None = None
        self._group: Any = None
        self._trainer: Trainer | None = None
        self._of_trainer = _Window()
        """The window of a trainer that has its own."""
        self._is_last_of_pass = False
        self._watched: set[int] = set()
        """The loaders that are being iterated."""
        self._has_skipped = False
        self.steps = 0
        self.lengths: set[int] = set()
        """How many batches made a step."""

    def install(self) -> None:
        hooks = self._hooks
        hooks.around_models.append(self._call)
        hooks.around_backward.append(self._backward)
        hooks.around_steps.append(self._step)
        hooks.around_batches.append(self._batches)
        hooks.after_optimizer.append(lambda optimizer: None)  # so that they are known
        self._gate_gradients()
        self._gate_scaler()
        self._gate_schedulers()
        Frameworks(hooks, self._steps, self._manage, self._batches).install()

    def _manage(self, trainer: Trainer | None) -> Trainer | None:
        before, self._trainer = self._trainer, trainer
        self._of_trainer = _Window()
        return before

    # What is known about the batch

    def _call(self, make: Callable[..., Any], module: Any, arguments: Any, options: Any) -> Any:
        if self._torch.is_grad_enabled() and any(p.requires_grad for p in module.parameters()):
            from torch.nn.parallel import DistributedDataParallel

            from .chunking.batch import find_batch
            from .chunking.nested import flatten_arguments

            batch = find_batch(flatten_arguments(arguments, options))
            if batch is not None:
                self._samples = max(1, batch.samples)
            if isinstance(module, DistributedDataParallel):
                self._group = module.process_group
        return make(*arguments, **options)

    def _batches(self, loader: Any, batches: Any) -> Iterator[Any]:
        # A loader around PyTorch's own may be ahead: what counts is what it hands out.
        if id(loader) in self._watched:
            yield from batches
            return
        self._watched.add(id(loader))
        try:
            yield from self._counted(loader, batches)
        finally:
            self._watched.discard(id(loader))

    def _counted(self, loader: Any, batches: Any) -> Iterator[Any]:
        count: float
        try:
            count = len(loader)
        except TypeError:
            count = math.inf
        for at, batch in enumerate(batches):
            if self._torch.is_grad_enabled():
                self._is_last_of_pass = at + 1 >= count
            yield batch
        # Of a loader without a length nobody knew that this was the end.
        for optimizer, window in list(self._of.items()):
            if window.batches and count == math.inf:
                self._is_last_of_pass = True
                window.batches -= 1
                self._weight = 0
                optimizer.step()
                optimizer.zero_grad()

    def _closes(self, optimizer: Any) -> bool:
        """Whether the batch at hand is the last of the optimizer's window."""
        if self._trainer is not None:
            return True  # it steps when its own window ends
        return self._window(optimizer).batches + 1 >= self._steps or self._is_last_of_pass

    def _window(self, optimizer: Any) -> _Window:
        if self._trainer is not None:
            return self._of_trainer
        if optimizer not in self._of:
            self._of[optimizer] = _Window()
        return self._of[optimizer]

    # Gradients

    def _backward(
        self, make: Callable[..., Any], losses: tuple[Any, ...], gradients: tuple[Any, ...]
    ) -> Any:
        trainer = self._trainer
        divisor = 1 if trainer is None else trainer.divisor()
        reduction = reduction_of(losses[0], divisor)
        if trainer is None:
            # A batch with several backward passes has the weight of the first.
            if self._weight is None:
                self._weight = self._weight_of(reduction)
            return make(self._weighted(losses, self._weight), gradients)
        window = self._of_trainer
        window.batches += 1
        if trainer.is_exact(reduction):
            return make(losses, gradients)
        weight = self._weight_of(reduction)
        window.total = window.total + (0 if weight is _SUM else weight)
        return make(self._weighted(losses, weight, divisor), gradients)

    def _weight_of(self, reduction: Reduction) -> Any:
        if self._unit is None:
            unit = float(self._samples if reduction.count is None else reduction.targets)
            self._unit = unit if self._group is None else self._over_ranks(unit, "MAX").item()
        if reduction.kind == SUM:
            return _SUM
        return self._samples if reduction.count is None else reduction.count.detach()

    def _weighted(self, losses: tuple[Any, ...], weight: Any, divisor: float = 1) -> Any:
        """Losses in units of the first batch, so that gradients are as large as they would be."""
        assert self._unit is not None
        if weight is _SUM:
            return tuple(loss * divisor if divisor != 1 else loss for loss in losses)
        if not isinstance(weight, self._torch.Tensor):
            factor = weight * divisor / self._unit
            return tuple(loss * factor if factor != 1 else loss for loss in losses)
        share = weight.to(self._torch.float64) * (divisor / self._unit)
        # The mean over nothing is not a number.
        return tuple(
            self._torch.where(share > 0, loss * share.to(loss.dtype), loss.new_zeros(()))
            for loss in losses
        )

    def _divide(self, optimizer: Any) -> None:
        window = self._window(optimizer)
        if window.is_divided:
            return
        window.is_divided = True
        total = window.total
        if self._trainer is None and self._weight is not _SUM:
            total = total + (self._samples if self._weight is None else self._weight)
        if isinstance(total, int) and total == 0:
            return  # sums, and what a trainer has weighted itself
        ranks = 1
        if self._group is not None:
            total = self._over_ranks(total, "SUM")
            ranks = self._torch.distributed.get_world_size(self._group)  # DDP divides by it
        unit = (self._unit or 1.0) * ranks
        if isinstance(total, self._torch.Tensor):
            # A window in which nothing counts has no gradient.
            exact = total.to(self._torch.float64)
            _scale(optimizer, self._torch.where(exact > 0, unit / exact, 0.0))
        elif unit != total:
            _scale(optimizer, unit / total)

    def _over_ranks(self, value: Any, operation: str) -> Any:
        distributed = self._torch.distributed
        device = "cuda" if distributed.get_backend(self._group) == "nccl" else "cpu"
        number = self._torch.as_tensor(value, dtype=self._torch.float64, device=device).clone()
        operations = distributed.ReduceOp
        distributed.all_reduce(number, op=getattr(operations, operation), group=self._group)
        return number

    def _step(self, make: Callable[..., Any], optimizer: Any, arguments: Any, options: Any) -> Any:
        # Lightning, and scripts with LBFGS, compute gradients in a function that the step calls.
        closure = options.get("closure", arguments[0] if arguments else None)
        self._has_skipped = not self._closes(optimizer)
        if self._has_skipped:
            loss = None
            if closure is not None:
                with self._torch.enable_grad():
                    loss = closure()
            window = self._window(optimizer)
            window.batches += 1
            window.left = _versions(optimizer)
            if self._weight is not _SUM:
                window.total = window.total + (
                    self._samples if self._weight is None else self._weight
                )
            self._weight = None
            return loss
        if closure is None:
            self._divide(optimizer)
            result = make(*arguments, **options)
        else:

            def divided() -> Any:
                if self._window(optimizer).is_divided:
                    raise self._hooks.refusal(
                        f"{type(optimizer).__name__} computes the gradients of a step several "
                        "times, and the batches before the last of a window are gone by then",
                        "leave --accumulate out, or use an optimizer that needs them once",
                    )
                loss = closure()
                self._divide(optimizer)
                return loss

            rest = {name: each for name, each in options.items() if name != "closure"}
            result = make(divided, *arguments[1:], **rest)
        self._close(optimizer)
        return result

    def _close(self, optimizer: Any) -> None:
        window = self._window(optimizer)
        self.steps += 1
        self.lengths.add(window.batches + (self._trainer is None))
        self._forget(optimizer)

    def _forget(self, optimizer: Any) -> None:
        self._weight = None
        if self._trainer is None:
            self._of[optimizer] = _Window()
        else:
            self._of_trainer = _Window()

    def _gate_gradients(self) -> None:
        kept = self._is_open_for

        def gate(owner: Any) -> None:
            original = owner.zero_grad

            @functools.wraps(original)
            def zero_grad(holder: Any, *arguments: Any, **options: Any) -> Any:
                if not kept(holder):
                    return original(holder, *arguments, **options)
                self._require_own_gradients(holder)

            owner.zero_grad = zero_grad

        gate(self._torch.optim.Optimizer)
        gate(self._torch.nn.Module)
        utilities = self._torch.nn.utils
        clip = utilities.clip_grad_norm_

        @functools.wraps(clip)
        def clip_grad_norm_(parameters: Any, max_norm: float, *rest: Any, **options: Any) -> Any:
            listed = [parameters] if isinstance(parameters, self._torch.Tensor) else [*parameters]
            for optimizer in self._stepping(listed):
                if not self._closes(optimizer):
                    max_norm = math.inf  # the norm is asked for, but not that of a window yet
                else:
                    self._divide(optimizer)
            return clip(listed, max_norm, *rest, **options)

        utilities.clip_grad_norm_ = clip_grad_norm_
        clip_values = utilities.clip_grad_value_

        @functools.wraps(clip_values)
        def clip_grad_value_(parameters: Any, *rest: Any, **options: Any) -> None:
            listed = [parameters] if isinstance(parameters, self._torch.Tensor) else [*parameters]
            for optimizer in self._stepping(listed):
                if not self._closes(optimizer):
                    return
                self._divide(optimizer)
            clip_values(listed, *rest, **options)

        utilities.clip_grad_value_ = clip_grad_value_

    def _is_open_for(self, holder: Any) -> bool:
        if self._trainer is not None:
            return False
        if isinstance(holder, self._torch.optim.Optimizer):
            return self._window(holder).batches > 0
        inside = list(holder.parameters())
        return any(self._window(each).batches > 0 for each in self._stepping(inside))

    def _require_own_gradients(self, holder: Any) -> None:
        """Refuse a window if the script zeroes what the loss of another model has added to it."""
        is_optimizer = isinstance(holder, self._torch.optim.Optimizer)
        for optimizer in [holder] if is_optimizer else self._stepping(list(holder.parameters())):
            left = self._window(optimizer).left
            if left and _versions(optimizer) != left:
                raise self._hooks.refusal(
                    f"between the step of a batch and its zero_grad(), another backward pass adds "
                    f"to the gradients of {type(optimizer).__name__}, and they are to be dropped "
                    "without those of the window",
                    "switch requires_grad off for parameters that such a loss does not train, or "
                    "leave --accumulate out",
                )

    def _stepping(self, parameters: list[Any]) -> list[Any]:
        """The optimizers that step any of these parameters."""
        known = {id(each) for each in parameters}
        return [
            optimizer
            for optimizer in self._hooks.optimizers
            if any(id(p) in known for group in optimizer.param_groups for p in group["params"])
        ]

    # What goes with a step

    def _gate_scaler(self) -> None:
        kind = self._torch.amp.GradScaler
        unscale, step, update = kind.unscale_, kind.step, kind.update

        @functools.wraps(unscale)
        def unscale_(scaler: Any, optimizer: Any) -> Any:
            return unscale(scaler, optimizer) if self._closes(optimizer) else None

        @functools.wraps(step)
        def scaled_step(scaler: Any, optimizer: Any, *arguments: Any, **options: Any) -> Any:
            closes, window = self._closes(optimizer), self._window(optimizer)
            if scaler.is_enabled() and not closes:
                return optimizer.step(*arguments, **options)  # which is left out, and counted
            result = step(scaler, optimizer, *arguments, **options)
            if closes and self._window(optimizer) is window:
                self._forget(optimizer)  # gradients had overflowed, and it was left out
            return result

        @functools.wraps(update)
        def updated(scaler: Any, *arguments: Any, **options: Any) -> Any:
            return None if self._has_skipped else update(scaler, *arguments, **options)

        kind.unscale_, kind.step, kind.update = unscale_, scaled_step, updated

    def _gate_schedulers(self) -> None:
        kind: Any = self._torch.optim.lr_scheduler.LRScheduler
        made = [kind]
        while made:
            each = made.pop()
            made += each.__subclasses__()
            if "step" in vars(each):
                each.step = self._gated_schedule(each.step)

    def _gated_schedule(self, original: Any) -> Any:
        @functools.wraps(original)
        def step(scheduler: Any, *arguments: Any, **options: Any) -> Any:
            optimizer = getattr(scheduler, "optimizer", None)
            is_open = optimizer is not None and self._window(optimizer).batches > 0
            if is_open and self._trainer is None:
                return None
            return original(scheduler, *arguments, **options)

        return step


def _versions(optimizer: Any) -> dict[int, int]:
    return {
        id(each): each.grad._version
        for group in optimizer.param_groups
        for each in group["params"]
        if each.grad is not None
    }


def _scale(optimizer: Any, factor: Any) -> None:
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            gradient = parameter.grad
            if gradient is not None:
                is_number = isinstance(factor, float)
                gradient.mul_(factor if is_number else factor.to(gradient.device, gradient.dtype))
