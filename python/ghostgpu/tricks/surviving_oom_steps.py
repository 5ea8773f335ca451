"""An optimizer's step that runs out of memory is made again, one parameter after the other.

A step is not one whole: it makes state, and then changes state and parameters in place. It is
repeated only if nothing was changed yet, which PyTorch's own counts of changes tell; state that it
has begun to make is taken away again. So it survives where memory runs out for new state, in the
first step, and where it is known to be short before anything is changed. For the rest it says that
the step is half made, and ends.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator
from typing import Any, Callable

from .optimizer_in_backward import steps_parameters_by_themselves
from .surviving_oom_errors import first_line, given_up, is_out_of_memory, release

_ATTEMPTS = 3
"""How often room for one parameter is looked for, each time after the cache has been freed."""

_COPIES = 3
"""How many tensors of a parameter's size its step makes at most: state that stays, and others."""


class SurvivingSteps:
    """Stands around the steps of all optimizers."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self.repeated: list[str] = []
        """What ran out, in words."""

    def step(self, make: Callable[..., Any], optimizer: Any, arguments: Any, options: Any) -> Any:
        """Make a step; one with a closure, which computes gradients again, only as it is."""
        cards = _cards(optimizer)
        is_plain = not any(arguments) and not any(options.values())
        if not cards or not is_plain or not steps_parameters_by_themselves(optimizer):
            return make(*arguments, **options)
        trouble = self._short_of_memory(optimizer, cards)
        if trouble is None:
            before = _State(optimizer)
            try:
                return make(*arguments, **options)
            except RuntimeError as error:
                if not is_out_of_memory(self._torch, error):
                    raise
                trouble = first_line(error)
            if before.was_changed():
                raise self._given_up(optimizer, "in the middle of its step", trouble)
            before.take_away_new()
        self.repeated.append(
            f"{type(optimizer).__name__} stepped parameter by parameter: {trouble}"
        )
        self._one_after_the_other(optimizer, cards, trouble)
        return None

    def _short_of_memory(self, optimizer: Any, cards: list[int]) -> str | None:
        """Whether all parameters at once are known to need more than there is."""
        cuda = self._torch.cuda
        for card in cards:
            needed = sum(
                each.numel() * each.element_size()
                for each in _stepped(optimizer)
                if each.get_device() == card and _makes_copies(optimizer, each)
            )
            cached = cuda.memory_reserved(card) - cuda.memory_allocated(card)
            # Asked first, as it costs nothing.
            if needed > cached and needed > cached + cuda.mem_get_info(card)[0]:
                return f"there is no room for {needed:,} bytes"
        return None

    def _one_after_the_other(self, optimizer: Any, cards: list[int], trouble: str) -> None:
        release(cards)
        raw = inspect.unwrap(type(optimizer).step)
        groups = optimizer.param_groups
        try:
            for group in groups:
                for parameter in group["params"]:
                    if parameter.grad is None:
                        continue
                    self._make_room(optimizer, parameter, cards, trouble)
                    optimizer.param_groups = [_for_one(group, parameter)]
                    before = _State(optimizer)
                    problem = None
                    try:
                        with self._torch.no_grad():
                            raw(optimizer)
                    except RuntimeError as error:
                        if not is_out_of_memory(self._torch, error):
                            raise
                        problem = first_line(error)
                    if problem is not None:
                        before.take_away_new()
                        raise self._given_up(optimizer, "in the middle of its step", problem)
        finally:
            optimizer.param_groups = groups
        for hook in _hooks_after(optimizer):
            hook(optimizer, (), {})

    def _make_room(self, optimizer: Any, parameter: Any, cards: list[int], trouble: str) -> None:
        """Before anything is changed: what was found free stays in the allocator's cache."""
        for _ in range(_ATTEMPTS):
            try:
                found = [self._torch.empty_like(parameter) for _copy in range(_COPIES)]
                del found
                return
            except RuntimeError as error:
                if not is_out_of_memory(self._torch, error):
                    raise
            release(cards)
        raise self._given_up(optimizer, "in its step, for single parameters too", trouble)

    def _given_up(self, optimizer: Any, where: str, trouble: str) -> RuntimeError:
        return given_up(
            self._torch,
            f"{type(optimizer).__name__} ran out of memory {where}, which cannot be repeated: some "
            "parameters may have been stepped and others not. Use a leaner optimizer "
            f"(--optimizer 8bit, adafactor or offload). The last error was: {trouble}",
        )


class _State:
    """What an optimizer has before a step."""

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer
        self._had = {id(each) for each in optimizer.state if optimizer.state[each]}
        self._versions = self._present()
        # Counters of steps, which come first and are small: they are put back.
        self._counters = [(each, each.clone()) for each in self._tensors() if each.numel() == 1]

    def _tensors(self) -> Iterator[Any]:
        for parameter in _stepped(self._optimizer):
            if id(parameter) in self._had:
                for value in self._optimizer.state[parameter].values():
                    if hasattr(value, "_version"):
                        yield value

    def _present(self) -> list[int]:
        changed = itertools.chain(_stepped(self._optimizer), self._tensors())
        return [each._version for each in changed if each.numel() != 1]

    def was_changed(self) -> bool:
        """Whether a parameter, or state that was there, was written to."""
        return self._versions != self._present()

    def take_away_new(self) -> None:
        """Put back what the beginning of a step does."""
        for parameter in _stepped(self._optimizer):
            if id(parameter) not in self._had:
                self._optimizer.state.pop(parameter, None)
        for each, value in self._counters:
            each.copy_(value)


def _stepped(optimizer: Any) -> list[Any]:
    return [
        each
        for group in optimizer.param_groups
        for each in group["params"]
        if each.grad is not None
    ]


def _cards(optimizer: Any) -> list[int]:
    return sorted({each.get_device() for each in _stepped(optimizer) if each.is_cuda})


def _makes_copies(optimizer: Any, parameter: Any) -> bool:
    """Whether a step needs new memory as large as this parameter: for state, or for all at once."""
    is_sgd = type(optimizer).__name__ == "SGD"  # which works in place, but for a first momentum
    if not optimizer.state.get(parameter):
        return not is_sgd or any(group.get("momentum") for group in optimizer.param_groups)
    return not is_sgd and not any(group.get("fused") for group in optimizer.param_groups)


def _for_one(group: dict[str, Any], parameter: Any) -> dict[str, Any]:
    form = {} if group.get("fused") or "foreach" not in group else {"foreach": False}
    return {**group, "params": [parameter], **form}


def _hooks_after(optimizer: Any) -> list[Any]:
    from torch.optim import optimizer as module

    everywhere = getattr(module, "_global_optimizer_post_hooks", {})
    own = getattr(optimizer, "_optimizer_step_post_hooks", {})
    return [*own.values(), *everywhere.values()]
