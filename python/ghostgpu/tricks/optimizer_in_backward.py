"""Steps each parameter as soon as its gradient is complete, and frees the gradient.

Saves: all gradients but the one at hand.
Costs: one small step for each parameter instead of a few large ones.
Numbers: identical to the optimizer's for-loop; the same up to rounding where it works on many
parameters at once.
Conflicts: accumulation, and surviving-oom, because a step cannot be taken back; clipping by the
norm of all gradients and `GradScaler`, which need all of them.
Refused: two backward passes before a step, clipping, a `GradScaler`, optimizers with a closure,
optimizers that are not PyTorch's, settings that change and gradients that are read between backward
and step, gradients that are not zeroed after it.
"""

from __future__ import annotations

import functools
import inspect
import sys
import weakref
from typing import Any, Callable

from .dynamo_shield import shielded
from .refusal import Refused
from .trick import Trick
from .user_code import is_user_code, users_line

_ALTERNATIVE = "use checkpointing to save activations, or offload-optimizer to save state"


class StepInBackward:
    """Steps the parameters of one optimizer, from hooks that run when a gradient is complete."""

    def __init__(self, optimizer: Any) -> None:
        name = type(optimizer).__name__
        if name == "LBFGS":
            raise Refused(f"{name} cannot step in backward: it needs a closure.", _ALTERNATIVE)
        if not steps_parameters_by_themselves(optimizer):
            raise Refused(
                f"{name} cannot step in backward: it is not one of PyTorch's optimizers, and its "
                "step may need the gradients of all parameters.",
                _ALTERNATIVE,
            )
        self._settings: dict[int, dict[str, Any]] = {}
        """Those of a group when a parameter of it was stepped."""
        self._optimizer = weakref.ref(optimizer)
        self._stepped: set[int] = set()
        self._has_made_a_step = False
        self._watched: set[int] = set()
        optimizer.register_step_pre_hook(self._before_step)
        self._watch(optimizer)

    def has_stepped(self, parameter: Any) -> bool:
        """Whether a parameter was stepped, and the script's own step is still to come."""
        return id(parameter) in self._stepped

    def is_open(self) -> bool:
        """Whether a backward pass has stepped parameters, and no step has come since."""
        return bool(self._stepped)

    def keeps_gradients(self) -> bool:
        """Whether there would be gradients of a step that was made."""
        return self._has_made_a_step and not self._stepped

    def _watch(self, optimizer: Any) -> None:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.requires_grad and id(parameter) not in self._watched:
                    self._watched.add(id(parameter))
                    parameter.register_post_accumulate_grad_hook(self._step)

    def _before_step(self, optimizer: Any, arguments: Any, options: Any) -> None:
        # The gradients are freed, so the script's own step finds nothing to do.
        for at, group in enumerate(optimizer.param_groups):
            name = _first_change(self._settings.get(at), group)
            if name is not None:
                raise Refused(
                    f"{type(optimizer).__name__} cannot step in backward: the script changes "
                    f"{name} between backward and step.",
                    "set it before the backward pass, or " + _ALTERNATIVE,
                )
        self._has_made_a_step = self._has_made_a_step or bool(self._stepped)
        self._settings.clear()
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
        at, group = next(
            (at, each)
            for at, each in enumerate(groups)
            if any(parameter is one for one in each["params"])
        )
        if at not in self._settings:
            self._settings[at] = {name: each for name, each in group.items() if name != "params"}
        optimizer.param_groups = [{**group, "params": [parameter]}]
        try:
            _plain_step(optimizer)
        finally:
            optimizer.param_groups = groups
        parameter.grad = None


def steps_parameters_by_themselves(optimizer: Any) -> bool:
    """PyTorch's own steps do, but for those that look at all gradients together.

    Others may have a norm of all gradients, or keep counts in their groups.
    """
    # PyTorch wraps it in every class that an instance was made of.
    step = inspect.unwrap(type(optimizer).step)
    is_of_torch = f"{step.__module__}.".startswith("torch.optim.")
    return is_of_torch and not step.__qualname__.startswith("LBFGS.")


def _first_change(before: dict[str, Any] | None, group: dict[str, Any]) -> str | None:
    """A setting of a group that is no longer what it was."""
    for name, value in (before or {}).items():
        if value is not group.get(name) and bool(value != group.get(name)):
            return name
    return None


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
        self._has_zeroed = False
        """Whether the script has zeroed gradients since the last backward pass."""
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
        self.hooks.around_backward.append(self._backward)
        self._refuse_what_needs_all_gradients()
        self._refuse_reading()
        self._watch_zeroing()

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

    def _backward(
        self, make: Callable[..., Any], losses: tuple[Any, ...], gradients: tuple[Any, ...]
    ) -> Any:
        try:
            return make(losses, gradients)
        except RuntimeError as error:
            if not self._made or "modified by an inplace operation" not in str(error):
                raise
            raise self.refused(
                "The optimizer cannot step in backward: a second backward pass goes through the "
                "same graph, whose parameters the first has stepped.",
                _ALTERNATIVE,
            ) from error

    def _refuse_reading(self) -> None:
        """Clipping by hand, norms and the like would find no gradients, and do nothing."""
        gradient: Any = self.torch.Tensor.grad

        def read(parameter: Any) -> Any:
            found = gradient.__get__(parameter)
            is_gone = found is None and self._has_stepped(parameter)
            if is_gone and is_user_code(sys._getframe(1).f_code.co_filename):
                raise self.refused(
                    "The optimizer cannot step in backward: the script looks at gradients "
                    f"between backward and step, in {users_line()}.",
                    _ALTERNATIVE,
                )
            return found

        def write(parameter: Any, value: Any) -> None:
            if value is None and is_user_code(sys._getframe(1).f_code.co_filename):
                self._has_zeroed = True
            gradient.__set__(parameter, value)

        kind: Any = self.torch.nn.Parameter
        kind.grad = property(read, write, gradient.__delete__)

    def _has_stepped(self, parameter: Any) -> bool:
        return any(each.has_stepped(parameter) for each in list(self._installed.values()))

    def _watch_zeroing(self) -> None:
        """Gradients are gone after a step: the script must not mean to add to them."""
        for kind in (self.torch.optim.Optimizer, self.torch.nn.Module):
            kind.zero_grad = shielded(self.torch, self._zeroing(kind.zero_grad))
        self.hooks.before_backward.append(self._require_zeroed)

    def _zeroing(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def zero_grad(*arguments: Any, **options: Any) -> Any:
            self._has_zeroed = True
            return original(*arguments, **options)

        return zero_grad

    def _require_zeroed(self) -> None:
        keeps = any(each.keeps_gradients() for each in self._installed.values())
        if keeps and not self._has_zeroed:
            raise self.refused(
                "The optimizer cannot step in backward: the script does not zero gradients "
                "after a step, and would add to them.",
                "call zero_grad() before the backward pass, or " + _ALTERNATIVE,
            )
        if not any(each.is_open() for each in self._installed.values()):
            self._has_zeroed = False

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
