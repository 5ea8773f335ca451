"""Keeps optimizer state in host memory and copies it to the card one parameter at a time.

Saves: all optimizer state on the card, but that of one parameter.
Costs: two copies of the state over PCIe in each step; pinned host memory of the same size.
Numbers: identical to the optimizer's for-loop.
Conflicts: optimizer-in-backward, eight-bit-optimizer.
Refused: optimizers with a closure (LBFGS), and those that are not PyTorch's: their state may not be
that of single parameters.
"""

from __future__ import annotations

import functools
import weakref
from typing import Any

from .optimizer_in_backward import _plain_step, steps_parameters_by_themselves
from .refusal import Refused
from .trick import Trick


class StateOnHost:
    """Steps an optimizer's parameters one by one, each with its state on the card.

    It runs in hooks around the optimizer's own step, which then finds no gradients.
    """

    def __init__(self, torch: Any, optimizer: Any) -> None:
        name = type(optimizer).__name__
        if name == "LBFGS":
            raise Refused(
                f"The state of {name} cannot be kept on the host: it is not that of single "
                "parameters.",
                "use checkpointing to save activations",
            )
        if not steps_parameters_by_themselves(optimizer):
            raise Refused(
                f"The state of {name} cannot be kept on the host: it is not one of PyTorch's "
                "optimizers, and its step may need that of all parameters together.",
                "use checkpointing to save activations",
            )
        self._torch = torch
        self.bytes = 0
        optimizer.register_step_pre_hook(self._before_step)
        optimizer.register_step_post_hook(self._after_step)
        self._gradients: list[tuple[Any, Any]] = []

    def _before_step(self, optimizer: Any, arguments: Any, options: Any) -> None:
        # The optimizer itself is the first argument.
        if arguments[1:] or options.get("closure") is not None:
            raise Refused(
                f"The state of {type(optimizer).__name__} cannot be kept on the host: its step "
                "has a closure.",
                "call step() without one",
            )
        self.bytes = 0
        groups = optimizer.param_groups
        for group in groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                self._move(optimizer, parameter, to_card=True)
                optimizer.param_groups = [{**group, "params": [parameter]}]
                try:
                    _plain_step(optimizer)
                finally:
                    optimizer.param_groups = groups
                self._move(optimizer, parameter, to_card=False)
                # Hidden from the step itself, which has nothing left to do, and restored
                # afterwards for the script.
                self._gradients.append((parameter, parameter.grad))
                parameter.grad = None

    def _after_step(self, optimizer: Any, arguments: Any, options: Any) -> None:
        for parameter, gradient in self._gradients:
            parameter.grad = gradient
        self._gradients.clear()

    def _move(self, optimizer: Any, parameter: Any, to_card: bool) -> None:
        state = optimizer.state.get(parameter)
        for name, value in (state or {}).items():
            # Most optimizers count steps in a scalar tensor on the host, which stays there.
            if not isinstance(value, self._torch.Tensor) or value.dim() == 0:
                continue
            if to_card and value.device != parameter.device:
                state[name] = value.to(parameter.device, non_blocking=True)
            elif not to_card and value.is_cuda:
                host = self._torch.empty_like(value, device="cpu", pin_memory=True)
                # Synchronous: the next step reads it, and the card's copy is freed immediately.
                state[name] = host.copy_(value)
                self.bytes += value.numel() * value.element_size()


class OffloadOptimizer(Trick):
    """Keeps the state of every optimizer of the script on the host."""

    name = "offload-optimizer"

    def install(self) -> None:
        self._made: weakref.WeakKeyDictionary[Any, StateOnHost] = weakref.WeakKeyDictionary()
        self._names: list[str] = []
        optimizer_type = self.torch.optim.Optimizer
        original = optimizer_type.__init__

        @functools.wraps(original)
        def init(optimizer: Any, *arguments: Any, **options: Any) -> None:
            original(optimizer, *arguments, **options)
            try:
                self._made[optimizer] = StateOnHost(self.torch, optimizer)
            except Refused as refused:
                raise self.refused(refused.reason, refused.alternative) from None
            self._names.append(type(optimizer).__name__)

        optimizer_type.__init__ = init

    def did(self) -> str | None:
        if not self._names:
            return None
        return f"the state of {', '.join(self._names[:3])} is kept on the host"

    def line(self) -> str | None:
        return "model, optimizer = ghostgpu.fit(model, optimizer, offload_optimizer=True)"
