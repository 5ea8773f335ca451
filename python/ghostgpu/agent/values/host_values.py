"""Contents of memory on the card, computed on the host when they are needed.

A `Content` stands for all bytes of one storage at one moment and never changes: a write to the
storage creates another content, derived from the previous one. Most are never needed, so a content
only remembers the call that made it and the contents of that call's arguments. It holds no tensor
on the card, so nothing there lives longer because of it. When it is needed, it is computed by the
same PyTorch function on host tensors.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Callable

MAX_DEPTH = 64
"""Limit for contents derived from contents: a counter in a loop must not become a long chain."""

SMALL_BYTES = 1 << 20

LARGE_BYTES = 256 << 20
"""Host memory for contents larger than `SMALL_BYTES`."""

MAX_SECONDS = 30.0
"""CPU time for computing values; after that, no more are computed. Wall-clock time would make an
answer depend on how busy the machine is."""

_SEED = 20_240_229
"""Seed of the random numbers that stand for those of the card."""


class NotKnown(Exception):
    """A value cannot be computed on the host."""


@dataclass(frozen=True)
class Geometry:
    """Which part of a storage a tensor is a view of."""

    dtype: Any
    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int

    @classmethod
    def of(cls, tensor: Any) -> Geometry:
        """The geometry of a dense tensor."""
        return cls(
            tensor.dtype, tuple(tensor.size()), tuple(tensor.stride()), tensor.storage_offset()
        )

    def view(self, content: Any) -> Any:
        """This part of a content's bytes, as a tensor."""
        return content.view(self.dtype).as_strided(self.size, self.stride, self.offset)


class Host:
    """Computes on the host without side effects on the script's gradients, modes or RNG."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.seconds = 0.0
        self.held_bytes = 0
        """Host memory of contents that are kept: small ones that were computed, and copies."""
        self._large: list[weakref.ref[Content]] = []
        self._draws = 0
        self._thread = threading.local()

    def next_draw(self) -> int:
        """A number that identifies the random draw of one call."""
        self._draws += 1
        return self._draws

    @contextmanager
    def working(self, is_over_soon: bool = False) -> Iterator[None]:
        """A context in which calls of PyTorch's functions are the agent's own."""
        if getattr(self._thread, "is_working", False):  # computing a content from another one
            yield
            return
        if self.seconds > MAX_SECONDS and not is_over_soon:
            raise NotKnown
        torch = self.torch
        started = time.thread_time()
        self._thread.is_working = True
        try:
            with torch._C.DisableTorchFunction(), torch.no_grad(), self._without_modes():
                yield
        finally:
            self._thread.is_working = False
            self.seconds += time.thread_time() - started

    @contextmanager
    def _without_modes(self) -> Iterator[None]:
        if not self.torch._C._len_torch_dispatch_stack():
            yield
            return
        from torch.utils._python_dispatch import _disable_current_modes

        with _disable_current_modes():
            yield

    @contextmanager
    def drawing(self, draw: int) -> Iterator[None]:
        """A context with the random numbers of this draw; the script's own RNG is unaffected."""
        generator = self.torch.default_generator
        state = generator.get_state()
        generator.manual_seed(_SEED + draw)
        try:
            yield
        finally:
            generator.set_state(state)

    def hold(self, content: Content) -> None:
        """A large content was computed: keep it until large contents exceed their limit."""
        self._large.append(weakref.ref(content))
        living = [each for each in (it() for it in self._large) if each is not None]
        held = sum(each.size_bytes for each in living)
        while held > LARGE_BYTES and len(living) > 1:
            oldest = living.pop(0)
            oldest.give_up()
            held -= oldest.size_bytes
        self._large = [weakref.ref(each) for each in living]

    def blank(self, count: int) -> Any:
        """A tensor of this many bytes.

        Not `torch.zeros`, which starts PyTorch's threads and waits for them: this may run in the
        middle of the script's backward pass.
        """
        return self.torch.frombuffer(bytearray(count), dtype=self.torch.uint8)


class Content:
    """All bytes of a storage at one moment."""

    __slots__ = (
        *("__weakref__", "_bytes", "_host", "_make", "depth", "draws", "is_kept", "size_bytes"),
    )

    def __init__(
        self,
        host: Host,
        size_bytes: int,
        make: Callable[[], Any],
        *,
        depth: int = 0,
        draws: bool = False,
        is_copy: bool = False,
    ) -> None:
        self._host = host
        self.size_bytes = size_bytes
        self.depth = depth
        self.draws = draws
        """Whether it depends on random numbers: then it is a possible content, not the true one."""
        self.is_kept = is_copy or size_bytes <= SMALL_BYTES
        """Whether the bytes are kept once computed; of others, the call is kept. A copy of the
        script's memory cannot be made a second time."""
        self._make: Callable[[], Any] | None = make
        self._bytes: Any = None

    @property
    def is_made(self) -> bool:
        """Whether its bytes have been computed and take memory."""
        return self._bytes is not None

    def bytes(self) -> Any:
        """The bytes, as a host tensor that must not be written to."""
        if self._bytes is not None:
            return self._bytes
        if self._make is None:
            raise NotKnown
        make, self._make = self._make, None  # if it fails, it is not tried again
        made = self._bytes = make()
        if self.is_kept:
            self.depth = 0
            self._host.held_bytes += self.size_bytes
        else:
            self._make = make
            self._host.hold(self)
        return made

    def give_up(self) -> None:
        """Free the memory of a large content, which can be computed again."""
        self._bytes = None

    def __del__(self) -> None:
        if self._bytes is not None and self.is_kept:
            self._host.held_bytes -= self.size_bytes


@dataclass(frozen=True)
class Shown:
    """An argument of a call: the part of a content that a tensor on the card was a view of."""

    content: Content
    geometry: Geometry


@dataclass(frozen=True)
class Blank:
    """An argument of which only shape and dtype matter."""

    dtype: Any
    size: tuple[int, ...]


class Call:
    """A call of one of PyTorch's functions, to be repeated on the host."""

    __slots__ = ("_arguments", "_draw", "_function", "_host", "_options", "depth", "draws")

    def __init__(
        self,
        host: Host,
        function: Callable[..., Any],
        arguments: Any,
        options: dict[str, Any],
        *,
        is_random: bool = False,
    ) -> None:
        self._host = host
        self._function = function
        self._arguments = arguments
        self._options = options
        self._draw = host.next_draw() if is_random else None
        contents = [each.content for each in _shown((arguments, options))]
        self.depth = 1 + max((each.depth for each in contents), default=0)
        self.draws = is_random or any(each.draws for each in contents)

    def results(self) -> Any:
        """The function's results, computed on the host."""
        return self.run(self._arguments)

    def run(self, arguments: Any) -> Any:
        """Call the function with these arguments in place of its own."""
        arguments, options = self._filled_in(arguments), self._filled_in(self._options)
        if self._draw is None:
            return self._function(*arguments, **options)
        with self._host.drawing(self._draw):
            return self._function(*arguments, **options)

    def content(self, parts: dict[int | None, Geometry], size_bytes: int) -> Content:
        """The content of a storage that holds some of the call's results.

        `parts` maps the index of each result to its geometry; the index of a single result is None.
        """

        def make() -> Any:
            with self._host.working():
                results = self.results()
                content = self._host.blank(size_bytes)
                for place, geometry in parts.items():
                    values = results if place is None else results[place]
                    if tuple(values.shape) != geometry.size:
                        raise NotKnown
                    geometry.view(content).copy_(values)
                return content

        return Content(self._host, size_bytes, make, depth=self.depth, draws=self.draws)

    def written(self, before: Content | None, geometry: Geometry, size_bytes: int) -> Content:
        """The content of a storage after the function wrote to its first argument, a view of it."""

        def make() -> Any:
            with self._host.working():
                content = self._host.blank(size_bytes)
                if before is not None:
                    content.copy_(before.bytes())
                self.run((geometry.view(content), *self._arguments))
                return content

        depth = max(self.depth, before.depth + 1 if before is not None else 0)
        draws = self.draws or (before is not None and before.draws)
        return Content(self._host, size_bytes, make, depth=depth, draws=draws)

    def _filled_in(self, value: Any) -> Any:
        kind = type(value)
        if kind is Shown:
            return value.geometry.view(value.content.bytes())
        if kind is Blank:
            return self._host.torch.empty(value.size, dtype=value.dtype, device="cpu")
        if kind in (list, tuple):
            return kind(self._filled_in(each) for each in value)
        if kind is dict:
            return {name: self._filled_in(each) for name, each in value.items()}
        if kind is slice:
            return slice(*(self._filled_in(each) for each in (value.start, value.stop, value.step)))
        return value


def _shown(value: Any) -> Iterator[Shown]:
    kind = type(value)
    if kind is Shown:
        yield value
    elif kind in (list, tuple):
        for each in value:
            yield from _shown(each)
    elif kind is dict:
        yield from _shown(list(value.values()))
    elif kind is slice:
        yield from _shown((value.start, value.stop, value.step))
