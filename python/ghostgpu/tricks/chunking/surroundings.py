"""What a forward pass reads beside its arguments, kept so that it can be repeated exactly.

Random generators, autocast, the `training` flags of modules, and buffers that a forward pass moves
(running statistics, counters, the vectors of a spectral norm).
"""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn


@dataclass(frozen=True)
class RandomState:
    """The states of all generators that a forward pass may draw from."""

    cpu: torch.Tensor
    cards: dict[int, torch.Tensor]
    python: Any
    numpy: Any

    @classmethod
    def now(cls, cards: tuple[int, ...]) -> RandomState:
        numpy = sys.modules.get("numpy")
        return cls(
            torch.get_rng_state(),
            {card: torch.cuda.get_rng_state(card) for card in cards},
            random.getstate(),
            numpy.random.get_state() if numpy is not None else None,
        )

    def restore(self) -> None:
        torch.set_rng_state(self.cpu)
        for card, state in self.cards.items():
            torch.cuda.set_rng_state(state, card)
        random.setstate(self.python)
        if self.numpy is not None:
            sys.modules["numpy"].random.set_state(self.numpy)

    def equals(self, other: RandomState) -> bool:
        return (
            torch.equal(self.cpu, other.cpu)
            and self.cards.keys() == other.cards.keys()
            and all(torch.equal(state, other.cards[card]) for card, state in self.cards.items())
            and self.python == other.python
            and _numpy_equals(self.numpy, other.numpy)
        )


def _numpy_equals(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    return all(
        bool((first == second).all()) if hasattr(first, "all") else bool(first == second)
        for first, second in zip(one, other)
    )


@dataclass(frozen=True)
class AutocastState:
    """Whether autocast is on for each kind of device, and how."""

    kinds: tuple[tuple[str, bool, torch.dtype], ...]
    keeps_casts: bool

    @classmethod
    def now(cls) -> AutocastState:
        kinds = tuple(
            (kind, torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind))
            for kind in ("cuda", "cpu")
        )
        return cls(kinds, torch.is_autocast_cache_enabled())

    @property
    def is_on(self) -> bool:
        return any(is_on for _, is_on, _ in self.kinds)

    def is_in(self, dtype: torch.dtype) -> bool:
        """Whether autocast computes in this type somewhere."""
        return any(is_on and dtype == each for _, is_on, each in self.kinds)

    @contextlib.contextmanager
    def switched_off(self) -> Iterator[None]:
        """Autocast is for forward passes: backward has the types that these had."""
        with contextlib.ExitStack() as stack:
            for kind, is_on, dtype in self.kinds:
                if is_on:
                    stack.enter_context(torch.autocast(kind, dtype=dtype, enabled=False))
            yield

    @contextlib.contextmanager
    def restored(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for kind, is_on, dtype in self.kinds:
                if is_on or torch.is_autocast_enabled(kind):
                    context = torch.autocast(
                        kind, dtype=dtype, enabled=is_on, cache_enabled=self.keeps_casts
                    )
                    stack.enter_context(context)
            yield


class ModuleModes:
    """The `training` flags of a model's modules at one moment."""

    def __init__(self, model: nn.Module) -> None:
        self._flags = [(module, module.training) for module in model.modules()]

    @contextlib.contextmanager
    def restored(self) -> Iterator[None]:
        # Assigned, not through `train()`, which scripts and libraries override.
        changed = [
            (module, module.training) for module, flag in self._flags if module.training != flag
        ]
        for module, flag in self._flags:
            module.training = flag
        try:
            yield
        finally:
            for module, flag in changed:
                module.training = flag


class Buffers:
    """A model's buffers before a forward pass, and what each chunk makes of them.

    Every chunk starts from the same buffers, as the whole batch would. If all leave the same ones
    behind, the buffers do not depend on the samples (a counter, the power iteration of a spectral
    norm), and one more pass is one update. If not, they are statistics of the batch.
    """

    def __init__(self, model: nn.Module, moving: set[str] | None) -> None:
        """`moving`: the buffers that passes are known to change; None if nothing is known."""
        self._places = [
            (module, name, f"{path}.{name}" if path else name)
            for path, module in model.named_modules()
            for name, buffer in module._buffers.items()
            if buffer is not None
        ]
        self._before = {path: _buffer(module, name) for module, name, path in self._places}
        self._versions = {path: _version(each) for path, each in self._before.items()}
        self._copies = {
            path: each.detach().clone()
            for path, each in self._before.items()
            if moving is None or path in moving
        }
        self._moved: dict[str, torch.Tensor] | None = None
        """What the first chunk has left in the buffers that it changed."""

    @property
    def unexpected(self) -> str | None:
        """A buffer that was changed in place, and of which there is no copy."""
        return next(
            (
                path
                for path, before in self._before.items()
                if path not in self._copies and _version(before) != self._versions[path]
            ),
            None,
        )

    def written_unseen(self, reads: bool) -> str | None:
        """A buffer that was changed through its `data`, which its version does not tell.

        `reads`: whether there are values; a rehearsal only takes the memory.
        """
        for module, name, path in self._places:
            before, copied = self._before[path], self._copies.get(path)
            is_replaced = module._buffers.get(name) is not before
            if copied is None or is_replaced or _version(before) != self._versions[path]:
                continue
            changed = (before.detach() != copied).any()
            is_number = not before.is_floating_point() or copied.isfinite().all()
            if reads and bool(changed) and bool(is_number):
                with torch.no_grad():
                    before.copy_(copied)
                return path
        return None

    def note(self, compares: bool) -> str | None:
        """Remember what a chunk left; names a buffer that another chunk left otherwise."""
        left = {
            path: present
            for module, name, path in self._places
            for present in [_buffer(module, name).detach()]
            if module._buffers[name] is not self._before[path]
            or _version(self._before[path]) != self._versions[path]
        }
        if self._moved is None:
            self._moved = {path: each.clone() for path, each in left.items()}
            return None
        for path in {*left, *self._moved} if compares else ():
            if path not in left or path not in self._moved:
                return path
            if not _same(self._moved[path], left[path]):
                return path
        return None

    def restore(self) -> None:
        """Put the buffers back to what they were before the pass."""
        with torch.no_grad():
            for module, name, path in self._places:
                before = self._before[path]
                if path in self._copies and _version(before) != self._versions[path]:
                    before.copy_(self._copies[path])
                    self._versions[path] = _version(before)
                if module._buffers.get(name) is not before:
                    module._buffers[name] = before

    def before_moving(self) -> dict[str, torch.Tensor]:
        """What was in the buffers before the pass, of those that it moved."""
        return {path: self._copies.get(path, self._before[path]) for path in self._moved or ()}


class BuffersRead:
    """The buffers that a forward pass has read and left alone.

    Where the script writes to one before backward (a queue of earlier samples, say), the pass
    cannot be repeated: there is no copy, since buffers may be large and are hardly ever written to.
    """

    def __init__(self, model: nn.Module, moved: dict[str, torch.Tensor]) -> None:
        """`moved`: those that the pass itself has changed, of which there are copies."""
        self._seen = [
            (module, name, where, buffer, _version(buffer))
            for path, module in model.named_modules()
            for name, buffer in module._buffers.items()
            for where in [f"{path}.{name}" if path else name]
            if buffer is not None and where not in moved
        ]

    def written(self) -> str | None:
        """One that is no longer what was read."""
        for module, name, where, buffer, version in self._seen:
            if module._buffers.get(name) is not buffer or _version(buffer) != version:
                return where
        return None


@contextlib.contextmanager
def buffers_set(model: nn.Module, values: dict[str, torch.Tensor]) -> Iterator[None]:
    """Run with these buffers, and leave those that are there now untouched."""
    places = []
    for path, value in values.items():
        owner, _, name = path.rpartition(".")
        module = model.get_submodule(owner)
        places.append((module, name, module._buffers[name]))
        module._buffers[name] = value.clone()
    try:
        yield
    finally:
        for module, name, present in places:
            module._buffers[name] = present


def _buffer(module: nn.Module, name: str) -> torch.Tensor:
    buffer = module._buffers[name]
    assert buffer is not None
    return buffer


def _version(tensor: torch.Tensor) -> int:
    return 0 if tensor.is_inference() else tensor._version


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and torch.equal(one, other.to(one.device))
