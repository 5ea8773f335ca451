"""Scaled losses for float16, in loops that know nothing of it.

A small gradient becomes zero in float16. So the loss is multiplied by a large number when the
backward pass begins, and gradients are divided by it when the pass ends: what the script reads,
clips or logs are the true gradients, also those of a model's inputs. Before another backward pass
adds to them, they are scaled again, which is exact because the scale is a power of two. A step
whose gradients overflowed is skipped, and the scale is halved; after many steps without overflow it
is doubled, like `torch.amp.GradScaler` does.
"""

from __future__ import annotations

import weakref
from typing import Any, Callable

from .hooks import Hooks
from .trick import Trick

_FIRST_SCALE = 65536.0
_GOOD_STEPS = 2000
"""After this many steps in a row without overflow, a larger scale is tried."""


class GradientScaling:
    """Wraps backward passes and steps; `is_wanted` says whether the trick cast the loss."""

    def __init__(self, torch: Any, trick: Trick, is_wanted: Callable[[], bool]) -> None:
        self._torch = torch
        self._trick = trick
        self._hooks: Hooks = trick.hooks
        self._is_wanted = is_wanted
        self._overflow: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        """Per optimizer, a tensor that says whether gradients overflowed since its last step."""
        self._inputs: dict[int, weakref.ref[Any]] = {}
        """Inputs of models that get gradients, such as an image in an adversarial attack."""
        self._scale = _FIRST_SCALE
        self._good_steps = 0
        self.scaled_passes = 0
        self.left_out_steps = 0

    def install(self) -> None:
        self._hooks.around_backward.append(self._backward)
        self._hooks.around_steps.append(self._step)

    def note_input(self, tensor: Any) -> Any:
        """Remember the leaves behind a model's input: they get gradients too."""
        if tensor.requires_grad:
            for leaf in _leaves(tensor):
                self._inputs.setdefault(id(leaf), weakref.ref(leaf))
        return tensor

    def _backward(
        self, make: Callable[..., Any], losses: tuple[Any, ...], gradients: tuple[Any, ...]
    ) -> Any:
        if not self._is_wanted():
            return make(losses, gradients)
        optimizers = self._hooks.optimizers
        scale = self._scale
        seen: set[int] = set()
        for optimizer in [*optimizers, None]:
            present = self._gradients(optimizer, seen)
            if present:
                self._torch._foreach_mul_(present, scale)
        self.scaled_passes += 1
        pairs = [
            (loss * scale, None) if gradient is None else (loss, gradient * scale)
            for loss, gradient in zip(losses, gradients)
        ]
        result = make(tuple(loss for loss, _ in pairs), tuple(each for _, each in pairs))
        seen = set()
        for optimizer in [*optimizers, None]:
            self._unscale(optimizer, self._gradients(optimizer, seen), scale)
        return result

    def _gradients(self, optimizer: Any, seen: set[int]) -> list[Any]:
        """The gradients of an optimizer's parameters, without those already in `seen`."""
        half = self._torch.float16
        found = []
        for tensor in self._tensors(optimizer):
            gradient = tensor.grad
            if gradient is None or id(tensor) in seen:
                continue
            seen.add(id(tensor))
            if gradient.dtype == half:
                raise self._trick.refused(
                    "autocast in fp16 needs float32 weights: gradients in float16 cannot be "
                    "unscaled without losing what scaling has saved",
                    "leave out `.half()`, or use --amp bf16",
                )
            found.append(gradient._values() if gradient.is_sparse else gradient)
        return found

    def _tensors(self, optimizer: Any) -> list[Any]:
        """An optimizer's parameters; for None, the models' inputs."""
        if optimizer is not None:
            return [each for group in optimizer.param_groups for each in group["params"]]
        alive = {key: reference() for key, reference in self._inputs.items()}
        self._inputs = {key: self._inputs[key] for key, each in alive.items() if each is not None}
        return [each for each in alive.values() if each is not None]

    def _unscale(self, optimizer: Any, gradients: list[Any], scale: float) -> None:
        torch = self._torch
        by_device: dict[Any, list[Any]] = {}
        for gradient in gradients:
            by_device.setdefault((gradient.device, gradient.dtype), []).append(gradient)
        for (device, _), each in by_device.items():
            overflow = {} if optimizer is None else self._overflow.setdefault(optimizer, {})
            if device not in overflow:
                overflow[device] = torch.zeros((), dtype=torch.float32, device=device)
            inverse = torch.full((), 1.0 / scale, dtype=torch.float32, device=device)
            torch._amp_foreach_non_finite_check_and_unscale_(each, overflow[device], inverse)

    def _step(self, make: Callable[..., Any], optimizer: Any, arguments: Any, options: Any) -> Any:
        overflow = self._overflow.pop(optimizer, None)
        if overflow is None:
            return make(*arguments, **options)
        if any(arguments) or options.get("closure") is not None:
            raise self._trick.refused(
                f"{type(optimizer).__name__} calls a closure in its step, and fp16 cannot look at "
                "gradients before they are used there",
                "use --amp bf16, which needs no scaling",
            )
        # A rehearsal has no values that could overflow, and reading would only wait.
        if not self._hooks.is_rehearsed and any(bool(each.item()) for each in overflow.values()):
            self._scale = max(self._scale / 2, 1.0)
            self._good_steps = 0
            self.left_out_steps += 1
            return None
        result = make(*arguments, **options)
        self._good_steps += 1
        if self._good_steps >= _GOOD_STEPS:
            self._good_steps = 0
            self._scale = min(self._scale * 2, 2.0**24)
        return result


def _leaves(tensor: Any) -> list[Any]:
    """The leaf tensors with gradients that a tensor was computed from."""
    if tensor.grad_fn is None:
        return [tensor]
    leaves, seen, nodes = [], set(), [tensor.grad_fn]
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            leaves.append(node.variable)
        nodes += [following for following, _ in node.next_functions]
    return leaves
