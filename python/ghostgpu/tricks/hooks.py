"""The hooks of tricks: calls of models, backward passes, optimizer steps and loaders."""

from __future__ import annotations

import contextlib
import functools
import threading
import weakref
from collections.abc import Iterator
from typing import Any, Callable

from .dynamo_shield import shielded
from .module_calls import put_around_calls
from .refusal import Refusal, Refused

AroundBackward = Callable[[Callable[..., Any], tuple[Any, ...], tuple[Any, ...]], Any]
"""Gets a function that runs the pass, the losses, and for each loss its gradient or None."""

AroundCall = Callable[[Callable[..., Any], Any, Any, Any], Any]
"""Gets a function that makes the call, the module, its arguments and options; returns a result."""


class Hooks:
    """Tricks append to these lists before `install`; nothing is wrapped for an empty list."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._threads = threading.local()
        self._backward_passes = 0
        self._graphs_later = 0
        self._optimizers: weakref.WeakKeyDictionary[Any, None] = weakref.WeakKeyDictionary()
        self.has_trained = False
        """Whether an optimizer has made a step in this process."""
        self.is_rehearsed = False
        """Whether this is a rehearsal: nothing is computed, so no value needs to be right."""
        self.refusal: Refusal = Refused
        """Makes the exception of a trick that would be wrong, from a reason and an alternative."""
        self.around_models: list[AroundCall] = []
        """Around calls of modules that are not made by another module."""
        self.around_modules: list[AroundCall] = []
        """Around all calls of modules."""
        self.before_backward: list[Callable[[], object]] = []
        self.refuses_in_backward = False
        """Whether a trick may raise `Refused` inside a backward pass, which ends the pass."""
        self.around_backward: list[AroundBackward] = []
        """Around the script's own `backward()`, but not `torch.autograd.grad` or nested passes."""
        self.around_steps: list[AroundCall] = []
        """Around optimizer steps; called with the optimizer in place of the module."""
        self.after_optimizer: list[Callable[[Any], object]] = []
        """Called when the script has made an optimizer."""
        self.before_step: list[Callable[[], object]] = []
        self.before_loader: list[Callable[[Any], object]] = []
        """Called when the script begins to iterate a `DataLoader`."""
        self.around_batches: list[Callable[[Any, Any], Any]] = []
        """Gets a loader and the batches of a pass over it; returns the batches to use instead."""
        self.before_batch: list[Callable[[], object]] = []
        """Called when the script takes a batch from a `DataLoader`."""
        self.before_mode: list[Callable[[Any, bool], object]] = []
        """Called with module and mode when the script itself calls `train()` or `eval()`."""

    @property
    def is_in_backward(self) -> bool:
        """Whether a backward pass is running in any thread."""
        return self._backward_passes > 0

    @property
    def optimizers(self) -> list[Any]:
        """The script's optimizers, in order of creation; tracked only if steps are hooked."""
        return list(self._optimizers)

    @contextlib.contextmanager
    def repeating(self) -> Iterator[None]:
        """A context for recomputing a forward pass in backward: its modules are hooked as usual."""
        passes, depth = self._backward_passes, getattr(self._threads, "depth", 0)
        self._backward_passes, self._threads.depth = 0, depth + 1
        try:
            yield
        finally:
            self._backward_passes, self._threads.depth = passes, depth

    @contextlib.contextmanager
    def own_backward(self) -> Iterator[None]:
        """A backward pass that a trick makes inside of a forward pass: nobody waits at it."""
        self._backward_passes += 1
        try:
            yield
        finally:
            self._backward_passes -= 1

    @contextlib.contextmanager
    def graph_later(self) -> Iterator[None]:
        """A forward pass without a graph that is repeated with one: it must return the same."""
        self._graphs_later += 1
        try:
            yield
        finally:
            self._graphs_later -= 1

    @property
    def has_graph(self) -> bool:
        """Whether a forward pass is one to be differentiated, here or when it is repeated."""
        return self._graphs_later > 0 or bool(self._torch.is_grad_enabled())

    def install(self) -> None:
        """Wrap the functions whose hooks are used."""
        torch = self._torch
        watches_calls = self.around_models or self.around_modules
        if watches_calls:
            put_around_calls(torch, self._calling)
        watches_backward = self.before_backward or self.around_backward
        if watches_calls or watches_backward or self.refuses_in_backward:
            for owner, name in (
                (torch.Tensor, "backward"),
                (torch.autograd, "backward"),
                (torch.autograd, "grad"),
            ):
                original = getattr(owner, name)
                setattr(owner, name, self._backward(original, name == "backward"))
        if self.around_steps or self.after_optimizer:
            self._watch_optimizers()
        from torch.optim.optimizer import register_optimizer_step_pre_hook

        register_optimizer_step_pre_hook(shielded(torch, self._stepping()))
        if self.before_loader or self.around_batches:
            self._watch_loaders()
        if self.before_batch:
            self._watch_batches()
        if self.before_mode:
            self._watch_modes()

    def _calling(self, original: Callable[..., Any]) -> Callable[..., Any]:
        from torch.utils.data import get_worker_info

        threads = self._threads

        def call(module: Any, *arguments: Any, **options: Any) -> Any:
            depth = getattr(threads, "depth", 0)
            # Image transforms, which are modules too, run in a loader's worker. It trains nothing
            # and may not use a card.
            if depth == 0 and get_worker_info() is not None:
                return original(module, *arguments, **options)
            # A backward pass recomputes checkpointed modules: these are not calls of models.
            is_inner = depth > 0 or self.is_in_backward
            around = self.around_modules if is_inner else self.around_modules + self.around_models
            if not around:
                return original(module, *arguments, **options)
            make = functools.partial(original, module)
            for each in around:
                make = _within(each, make, module)
            threads.depth = depth + 1
            try:
                return make(*arguments, **options)
            finally:
                threads.depth = depth

        return call

    def _backward(self, original: Callable[..., Any], fills: bool) -> Callable[..., Any]:
        """Wrap a backward pass; only one that `fills` the `grad` of tensors has hooks around it."""

        @functools.wraps(original)
        def backward(*arguments: Any, **options: Any) -> Any:
            is_outer = self._backward_passes == 0
            if is_outer:
                for each in self.before_backward:
                    each()
            make = original
            if is_outer and fills and self.around_backward:
                make = self._with_those_around(original)
            self._backward_passes += 1
            try:
                return make(*arguments, **options)
            except Refused as refused:
                # Raised by a trick inside the pass: turn it into what ends the script.
                raise self.refusal(refused.reason, refused.alternative) from None
            finally:
                self._backward_passes -= 1

        return shielded(self._torch, backward)

    def _with_those_around(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def backward(losses: Any, gradients: Any = None, *rest: Any, **options: Any) -> Any:
            for name in ("gradient", "grad_tensors"):
                gradients = options.pop(name, gradients)
            is_one = isinstance(losses, self._torch.Tensor)
            all_losses = (losses,) if is_one else tuple(losses)
            if gradients is None:
                all_gradients: tuple[Any, ...] = (None,) * len(all_losses)
            else:
                is_one_gradient = isinstance(gradients, self._torch.Tensor)
                all_gradients = (gradients,) if is_one_gradient else tuple(gradients)

            def make(losses: tuple[Any, ...], gradients: tuple[Any, ...]) -> Any:
                if is_one:
                    return original(losses[0], gradients[0], *rest, **options)
                return original(losses, gradients, *rest, **options)

            for each in self.around_backward:
                make = functools.partial(each, make)
            return make(all_losses, all_gradients)

        return backward

    def _watch_optimizers(self) -> None:
        kind = self._torch.optim.Optimizer
        original = kind.__init__

        @functools.wraps(original)
        def initialise(optimizer: Any, *arguments: Any, **options: Any) -> None:
            original(optimizer, *arguments, **options)
            self._optimizers[optimizer] = None
            if self.around_steps:
                self._watch_step(type(optimizer))
            for each in self.after_optimizer:
                each(optimizer)

        kind.__init__ = shielded(self._torch, initialise)

    def _watch_step(self, kind: Any) -> None:
        original = kind.step
        # The step may be inherited from a class that is already wrapped.
        if getattr(original, "is_watched_by_tricks", False):
            return

        @functools.wraps(original)
        def step(optimizer: Any, *arguments: Any, **options: Any) -> Any:
            # A step that calls the step of its base class is one step.
            if getattr(self._threads, "steps", None) is optimizer:
                return original(optimizer, *arguments, **options)
            make: Callable[..., Any] = functools.partial(original, optimizer)
            for each in self.around_steps:
                make = _within(each, make, optimizer)
            self._threads.steps = optimizer
            try:
                return make(*arguments, **options)
            finally:
                self._threads.steps = None

        step.is_watched_by_tricks = True  # type: ignore[attr-defined]
        kind.step = shielded(self._torch, step)

    def _stepping(self) -> Callable[..., None]:
        def before_step(optimizer: Any, arguments: Any, options: Any) -> None:
            self.has_trained = True
            for each in self.before_step:
                each()

        return before_step

    def _watch_loaders(self) -> None:
        from torch.utils.data import DataLoader

        original = DataLoader.__iter__

        @functools.wraps(original)
        def iterate(loader: Any) -> Any:
            for each in self.before_loader:
                each(loader)
            batches = original(loader)
            for around in self.around_batches:
                batches = around(loader, batches)
            return batches

        patched: Any = DataLoader
        patched.__iter__ = iterate

    def _watch_batches(self) -> None:
        from torch.utils.data import dataloader

        patched: Any = dataloader._BaseDataLoaderIter
        original = patched.__next__

        @functools.wraps(original)
        def take(batches: Any) -> Any:
            for each in self.before_batch:
                each()
            return original(batches)

        patched.__next__ = take

    def _watch_modes(self) -> None:
        module_type = self._torch.nn.Module
        original = module_type.train

        @functools.wraps(original)
        def train(module: Any, mode: bool = True) -> Any:
            is_outer = not getattr(self._threads, "is_in_train", False)
            if is_outer:
                for each in self.before_mode:
                    each(module, bool(mode))
            self._threads.is_in_train = True
            try:
                return original(module, mode)
            finally:
                if is_outer:
                    self._threads.is_in_train = False

        module_type.train = shielded(self._torch, train)


def _within(around: AroundCall, make: Callable[..., Any], module: Any) -> Any:
    def made(*arguments: Any, **options: Any) -> Any:
        return around(make, module, arguments, options)

    return made
