"""Steps each parameter as soon as its gradient is complete, and frees the gradient.

Saves: all gradients but the one at hand.
Costs: one small step for each parameter instead of a few large ones.
Numbers: identical to the optimizer's for-loop; the same up to rounding where it works on many
parameters at once.
Conflicts: accumulation, and surviving-oom, because a step cannot be taken back; clipping by the
norm of all gradients and `GradScaler`, which need all of them.
Refused: two backward passes before a step, clipping, a `GradScaler`, optimizers with a closure.
"""

from __future__ import annotations

import functools
import weakref
from typing import Any

from .refusal import Refused
from .trick import Trick

_ALTERNATIVE = "use checkpointing to save activations, or offload-optimizer to save state"


class StepInBackward:
    """Steps the parameters of one optimizer, from hooks that run when a gradient is complete."""

    def __init__(self, optimizer: Any) -> None:
        name = type(optimizer).__name__
        if name == "LBFGS":
            raise Refused(f"{name} cannot step in backward: it needs a closure.", _ALTERNATIVE)
        self._optimizer = weakref.ref(optimizer)
        self._stepped: set[int] = set()
        self._watched: set[int] = set()
        optimizer.register_step_pre_hook(self._before_step)
        self._watch(optimizer)

    def _watch(self, optimizer: Any) -> None:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.requires_grad and id(parameter) not in self._watched:
                    self._watched.add(id(parameter))
                    parameter.register_post_accumulate_grad_hook(self._step)

    def _before_step(self, optimizer: Any, arguments: Any, options: Any) -> None:
        # The gradients are freed, so the script's own step finds nothing to do.
        self._stepped.clear()
        self._watch(optimizer)

    def _step(self, parameter: Any) -> None:
        optimizer = self._optimizer()
        if optimizer is None:
            return
        if id(parameter) in self._stepped:
            raise Refused(
                f"{type(optimizer).__name__} cannot step in backward: a second backward pass "
                "came before the step, and its gradients belong to those of the first.",
                _ALTERNATIVE,
            )
        self._stepped.add(id(parameter))
        groups = optimizer.param_groups
        group = next(each for each in groups if any(parameter is one for one in each["params"]))
        optimizer.param_groups = [{**group, "params": [parameter]}]
        try:
            _plain_step(optimizer)
        finally:
            optimizer.param_groups = groups
        parameter.grad = None


def _plain_step(optimizer: Any) -> None:
    """A step that is not counted: hooks and schedulers see only the script's own."""
    step = type(optimizer).step
    while getattr(step, "hooked", False):
        step = step.__wrapped__
    step(optimizer)


class OptimizerInBackward(Trick):
    """Every optimizer of the script steps in backward."""

    name = "optimizer-in-backward"

    def install(self) -> None:
        self._made: list[str] = []
        self.hooks.refuses_in_backward = True
        self._installed: weakref.WeakKeyDictionary[Any, StepInBackward] = (
            weakref.WeakKeyDictionary()
        )
        optimizer_type = self.torch.optim.Optimizer
        original = optimizer_type.__init__

        @functools.wraps(original)
        def init(optimizer: Any, *arguments: Any, **options: Any) -> None:
            original(optimizer, *arguments, **options)
            try:
                self._installed[optimizer] = StepInBackward(optimizer)
            except Refused as refused:
                raise self.refused(refused.reason, refused.alternative) from None
            self._made.append(type(optimizer).__name__)

        optimizer_type.__init__ = init
        self._refuse_what_needs_all_gradients()

    def _refuse_what_needs_all_gradients(self) -> None:
        utilities = self.torch.nn.utils
        for name in ("clip_grad_norm_", "clip_grad_value_"):
            refusing = self._refusing(getattr(utilities, name), f"{name} needs all gradients")
            setattr(utilities, name, refusing)
        scaler = self.torch.amp.GradScaler
        original = scaler.scale
        reason = "a GradScaler checks all gradients before the step"

        @functools.wraps(original)
        def scale(made: Any, *arguments: Any, **options: Any) -> Any:
            if made.is_enabled() and self._made:
                raise self.refused(
                    f"The optimizer cannot step in backward: {reason}.", _ALTERNATIVE
                )
            return original(made, *arguments, **options)

        scaler.scale = scale

    def _refusing(self, original: Any, reason: str) -> Any:
        @functools.wraps(original)
        def refusing(*arguments: Any, **options: Any) -> Any:
            if self._made:
                raise self.refused(
                    f"The optimizer cannot step in backward: {reason}.", _ALTERNATIVE
                )
            return original(*arguments, **options)

        return refusing

    def did(self) -> str | None:
        return f"{', '.join(self._made[:3])} stepped in backward" if self._made else None

    def line(self) -> str | None:
        return "model, optimizer = ghostgpu.fit(model, optimizer, step_in_backward=True)"
