"""`nn.ReLU(inplace=True)` and similar activations, wherever nothing else needs their input.

Two conditions must hold, or results would be silently wrong. The tensor has no other use, which
follows from the code of the module around the activation, traced with `torch.fx`. And the operation
that made the tensor does not need it in its own backward pass, which follows from the graph at the
first call. An activation that fails either is left alone, with the reason.

Saves: one copy of each such activation.
Costs: nothing.
Numbers: identical.
Conflicts: none.
"""

from __future__ import annotations

import copy
import weakref
from collections import Counter
from collections.abc import Mapping
from typing import Any, Callable

from .hooks import Hooks
from .trick import Trick, counted

_PRODUCERS = (
    *("AddBackward0", "SubBackward0", "AddmmBackward0", "MmBackward0", "BmmBackward0"),
    *("BaddbmmBackward0", "ConvolutionBackward0", "CatBackward0", "MulBackward0"),
    *("NativeBatchNormBackward0", "CudnnBatchNormBackward0", "NativeLayerNormBackward0"),
    *("NativeGroupNormBackward0", "MaxPool2DWithIndicesBackward0", "AvgPool2DBackward0"),
    *("BatchNormImplBackward0", "MkldnnConvolutionBackward0"),
)
"""Operations whose backward pass does not need their own result."""


class InplaceActivations(Trick):
    """Decides for each activation when it is first called with gradients."""

    name = "inplace-activations"

    def __init__(self, torch: Any, hooks: Hooks, options: Mapping[str, str]) -> None:
        super().__init__(torch, hooks, options)
        nn = torch.nn
        # Their derivatives can be computed from their results alone.
        self._kinds = (nn.ReLU, nn.ReLU6, nn.Hardtanh, nn.LeakyReLU, nn.ELU, nn.SELU, nn.CELU)
        self._models: weakref.WeakSet[Any] = weakref.WeakSet()
        self._open: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        """Activations that the code allows and whose graph was not seen yet, with their paths."""
        self._done: Counter[str] = Counter()
        self._left: dict[str, str] = {}
        """Paths of activations that were left alone, and why."""

    def install(self) -> None:
        self.hooks.around_modules.append(self._call)
        self.hooks.around_models.append(self._call_model)

    def _call_model(
        self, make: Callable[..., Any], model: Any, arguments: Any, options: Any
    ) -> Any:
        if model not in self._models and self.torch.is_grad_enabled():
            self._models.add(model)
            for place, parent in model.named_modules():
                self._look_at(place, parent)
        return make(*arguments, **options)

    def _look_at(self, place: str, parent: Any) -> None:
        found = {
            name: child
            for name, child in parent.named_children()
            if type(child) in self._kinds and not child.inplace and _derives_from_result(child)
        }
        if not found:
            return
        uses = self._uses(parent)
        for name, child in found.items():
            where = f"{place}.{name}" if place else name
            problem = self._hooked(child) or uses.get(name, "its module does not call it itself")
            if problem:
                self._left[where] = problem
            else:
                self._open[child] = where

    def _hooked(self, child: Any) -> str | None:
        has_hooks = child._forward_hooks or child._forward_pre_hooks
        return "a hook looks at it" if has_hooks else None

    def _uses(self, parent: Any) -> dict[str, str]:
        """For each child that is called, why it may not overwrite its input; empty if it may."""
        graph = traced(self.torch, parent)
        if graph is None:
            return {name: "its module's code cannot be followed" for name, _ in _children(parent)}
        problems: dict[str, str] = {}
        for node in graph.nodes:
            if node.op != "call_module":
                continue
            given = node.args[0] if node.args else None
            if given is None or not hasattr(given, "users"):
                problem = "its input cannot be followed"
            elif given.op != "call_module" and given.op != "call_function":
                problem = "its input belongs to the caller"
            elif len(given.users) > 1:
                problem = "its input is used again"
            elif given.op == "call_module" and _has_hooks(parent, given.target):
                problem = "a hook looks at its input"
            else:
                problem = ""
            problems[node.target] = problems.get(node.target) or problem
        return problems

    def _call(self, make: Callable[..., Any], module: Any, arguments: Any, options: Any) -> Any:
        place = self._open.get(module)
        if place is not None and arguments and self.torch.is_grad_enabled():
            del self._open[module]
            problem = self._problem(arguments[0])
            if problem is None:
                module.inplace = True
                self._done[type(module).__name__] += 1
            else:
                self._left[place] = problem
        return make(*arguments, **options)

    def _problem(self, tensor: Any) -> str | None:
        if type(tensor) is not self.torch.Tensor or tensor._is_view():
            return "its input is a view of another tensor"
        if tensor.grad_fn is None:
            return (
                "its input has no gradient"
                if not tensor.is_leaf or tensor.requires_grad
                else ("its input is data")
            )
        producer = type(tensor.grad_fn).__name__
        if producer not in _PRODUCERS:
            return f"{producer.replace('Backward0', '')} needs its own result in backward"
        return None

    def did(self) -> str | None:
        if not self._done:
            return None
        did = f"{counted(self._done, 'module', 'modules')} in place"
        return f"{did}; left alone: {self._reasons()}" if self._left else did

    def _reasons(self) -> str:
        named = [f"{place} ({reason})" for place, reason in list(self._left.items())[:3]]
        more = len(self._left) - len(named)
        return ", ".join(named) + (f" and {more} more" if more else "")

    def nothing_because(self) -> str:
        if self._left:
            return f"none may write over its input: {self._reasons()}"
        return "no model has ReLU modules, or the like, that are not in place already"

    def line(self) -> str | None:
        return f"nn.{next(iter(self._done))}(inplace=True)" if self._done else None


def _derives_from_result(module: Any) -> bool:
    if hasattr(module, "negative_slope"):
        return bool(module.negative_slope >= 0)
    return bool(getattr(module, "alpha", 1.0) > 0)


def _children(parent: Any) -> Any:
    return parent.named_children()


def _has_hooks(parent: Any, place: str) -> bool:
    try:
        child = parent.get_submodule(place)
    except AttributeError:
        return True
    return bool(child._forward_hooks)


def traced(torch: Any, parent: Any) -> Any:
    """The graph of a module's own `forward` with its children as leaves; None if not traceable."""
    import torch.fx

    fx: Any = torch.fx

    class Tracer(fx.Tracer):  # type: ignore[misc]
        def is_leaf_module(self, module: Any, name: str) -> bool:
            return True

    # Trace a copy: code that stores tensors in attributes would store the tracer's proxies.
    twin = copy.copy(parent)
    twin.__dict__ = {**parent.__dict__}
    for name in ("_parameters", "_buffers", "_modules"):
        twin.__dict__[name] = parent.__dict__[name].copy()
    try:
        return Tracer().trace(twin)
    except Exception:  # code that depends on values, or that the tracer does not know
        return None
