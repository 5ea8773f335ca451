"""The places at which tricks take effect: calls of models, backward passes, steps and loaders."""

from __future__ import annotations

import functools
import threading
from typing import Any, Callable

from .dynamo_shield import shielded
from .module_calls import put_around_calls
from .refusal import Refusal, Refused

AroundCall = Callable[[Callable[..., Any], Any, Any, Any], Any]
"""Gets the call that is left to make, the module, its arguments and options; returns the result."""


class Hooks:
    """Tricks put themselves into these lists before `install`; what is empty is not wrapped."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._threads = threading.local()
        self._backward_passes = 0
        self.is_rehearsed = False
        """Whether nothing is computed: then no value needs to be right."""
        self.refusal: Refusal = Refused
        """Makes what a trick raises that cannot be right, of a reason and an alternative."""
        self.around_models: list[AroundCall] = []
        """Calls of modules that no other module makes."""
        self.around_modules: list[AroundCall] = []
        """All calls of modules."""
        self.before_backward: list[Callable[[], object]] = []
        self.before_step: list[Callable[[], object]] = []
        self.before_loader: list[Callable[[Any], object]] = []
        """Where the script begins to iterate a `DataLoader`."""
        self.around_batches: list[Callable[[Any, Any], Any]] = []
        """Gets a loader and the batches of a pass over it; returns the batches to have instead."""
        self.before_batch: list[Callable[[], object]] = []
        """Where the script takes a batch from a `DataLoader`."""
        self.before_mode: list[Callable[[Any, bool], object]] = []
        """Where the script itself calls `train()` or `eval()`, with the module and the mode."""

    @property
    def is_in_backward(self) -> bool:
        """Whether a backward pass is under way, in whatever thread."""
        return self._backward_passes > 0

    def install(self) -> None:
        """Wrap what somebody waits at."""
        torch = self._torch
        if self.around_models or self.around_modules:
            put_around_calls(torch, self._calling)
            for owner, name in (
                (torch.Tensor, "backward"),
                (torch.autograd, "backward"),
                (torch.autograd, "grad"),
            ):
                setattr(owner, name, self._backward(getattr(owner, name)))
        if self.before_step:
            from torch.optim.optimizer import register_optimizer_step_pre_hook

            register_optimizer_step_pre_hook(shielded(torch, self._stepping()))
        if self.before_loader or self.around_batches:
            self._watch_loaders()
        if self.before_batch:
            self._watch_batches()
        if self.before_mode:
            self._watch_modes()

    def _calling(self, original: Callable[..., Any]) -> Callable[..., Any]:
        threads = self._threads

        def call(module: Any, *arguments: Any, **options: Any) -> Any:
            # A backward pass calls modules again that are checkpointed: they are inner ones.
            depth = getattr(threads, "depth", 0)
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

    def _backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def backward(*arguments: Any, **options: Any) -> Any:
            if self._backward_passes == 0:
                for each in self.before_backward:
                    each()
            self._backward_passes += 1
            try:
                return original(*arguments, **options)
            finally:
                self._backward_passes -= 1

        return shielded(self._torch, backward)

    def _stepping(self) -> Callable[..., None]:
        def before_step(optimizer: Any, arguments: Any, options: Any) -> None:
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
