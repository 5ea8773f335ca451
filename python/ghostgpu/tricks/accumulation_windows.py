"""Accumulation in loops that know nothing of it: what belongs to a step waits for the last batch.

Until then steps, `zero_grad`, clipping, a `GradScaler`'s part and the scheduler's are left out.
Batches weigh as much as they have samples: gradients that are there are put into the unit of the
batch that comes next, and divided by the weight of all before the step. The last batch of a pass
over a loader ends a window, however short it is.
"""

from __future__ import annotations

import functools
import math
import weakref
from collections.abc import Iterator
from typing import Any, Callable

from .trick import Trick


class _Window:
    def __init__(self) -> None:
        self.batches = 0
        self.weight = 0
        self.is_divided = False


class Windows:
    """The open windows of all optimizers."""

    def __init__(self, torch: Any, trick: Trick, steps: int) -> None:
        self._torch = torch
        self._hooks = trick.hooks
        self._steps = steps
        self._of: weakref.WeakKeyDictionary[Any, _Window] = weakref.WeakKeyDictionary()
        self._samples = 1
        self._unit = 1
        self._is_last_of_pass = False
        self._has_skipped = False
        self.steps = 0
        self.shortest = steps

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

    # What is known about the batch

    def _call(self, make: Callable[..., Any], module: Any, arguments: Any, options: Any) -> Any:
        if self._torch.is_grad_enabled() and any(p.requires_grad for p in module.parameters()):
            from .chunking.batch import find_batch
            from .chunking.nested import flatten_arguments

            batch = find_batch(flatten_arguments(arguments, options))
            if batch is not None:
                self._samples = max(1, batch.samples)
        return make(*arguments, **options)

    def _batches(self, loader: Any, batches: Any) -> Iterator[Any]:
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
                window.weight -= self._samples
                optimizer.step()
                optimizer.zero_grad()

    def _closes(self, optimizer: Any) -> bool:
        """Whether the batch at hand is the last of the optimizer's window."""
        return self._window(optimizer).batches + 1 >= self._steps or self._is_last_of_pass

    def _window(self, optimizer: Any) -> _Window:
        if optimizer not in self._of:
            self._of[optimizer] = _Window()
        return self._of[optimizer]

    # Gradients

    def _backward(
        self, make: Callable[..., Any], losses: tuple[Any, ...], gradients: tuple[Any, ...]
    ) -> Any:
        if self._samples != self._unit:
            for optimizer, window in list(self._of.items()):
                if window.batches:
                    _scale(optimizer, self._unit / self._samples)
            self._unit = self._samples
        return make(losses, gradients)

    def _divide(self, optimizer: Any) -> None:
        window = self._window(optimizer)
        if not window.is_divided:
            window.is_divided = True
            _scale(optimizer, self._unit / (window.weight + self._samples))

    def _step(self, make: Callable[..., Any], optimizer: Any, arguments: Any, options: Any) -> Any:
        window = self._window(optimizer)
        self._has_skipped = not self._closes(optimizer)
        if self._has_skipped:
            window.batches += 1
            window.weight += self._samples
            return None
        self._divide(optimizer)
        self.steps += 1
        self.shortest = min(self.shortest, window.batches + 1)
        self._of[optimizer] = _Window()
        return make(*arguments, **options)

    def _gate_gradients(self) -> None:
        kept = self._is_open_for

        def gate(owner: Any) -> None:
            original = owner.zero_grad

            @functools.wraps(original)
            def zero_grad(holder: Any, *arguments: Any, **options: Any) -> Any:
                if not kept(holder):
                    return original(holder, *arguments, **options)

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

    def _is_open_for(self, holder: Any) -> bool:
        if isinstance(holder, self._torch.optim.Optimizer):
            return self._window(holder).batches > 0
        inside = list(holder.parameters())
        return any(self._window(each).batches > 0 for each in self._stepping(inside))

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
            if scaler.is_enabled() and not self._closes(optimizer):
                return optimizer.step(*arguments, **options)  # which is left out, and counted
            return step(scaler, optimizer, *arguments, **options)

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
            if optimizer is not None and self._window(optimizer).batches > 0:
                return None
            return original(scheduler, *arguments, **options)

        return step


def _scale(optimizer: Any, factor: float) -> None:
    if factor == 1:
        return
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter.grad is not None:
                parameter.grad.mul_(factor)
