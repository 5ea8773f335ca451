"""Has PyTorch's profiler announce every operator, to the stand-in library, which listens.

It does so in the mode that was made for NVIDIA's tools: a range with the operator's name around
each. A script that starts a profiler of its own has precedence: only one can be on.

The profiler announces what the thread does that started it, and the backward passes of that thread.
Other threads start it for themselves while they run a model, as those of `DataParallel` do.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from typing import Any, Callable


class _Thread(threading.local):
    """What a thread has started."""

    is_announcing = False
    """For as long as the profiler is on, or as the thread lives."""
    disable: Callable[[], object] | None = None
    """Ends what it has started for one model's call."""


class Operators:
    """The announcing profiler."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._is_on = False
        self._thread = _Thread()
        self._enable: Callable[..., Any] = lambda: None

    def start(self) -> None:
        """Announce from now on."""
        profiler = self._torch.autograd.profiler
        nothing_further = (False,) * 5
        config = profiler.ProfilerConfig(
            profiler.ProfilerState.NVTX, *nothing_further, profiler._ExperimentalConfig()
        )
        self._enable = functools.partial(profiler._enable_profiler, config, set())
        self._disable = profiler._disable_profiler
        # Not `emit_nvtx`, which waits for the card: that would make a context on the first card in
        # a process that is about to choose another, and only the script may wait for other ranks.
        getattr(profiler, "_run_on_profiler_start", lambda: None)()
        self._enable()
        self._is_on = True
        self._thread.is_announcing = True
        for name in ("_prepare_profiler", "_enable_profiler"):
            self._give_way_to(profiler, name)

    def begin_call(self) -> None:
        """A thread is about to run a model."""
        if self._thread.is_announcing or not self._is_on:
            return
        try:
            self._enable()
        except RuntimeError:
            return  # it is on: the thread works for a backward pass, or profiles itself
        self._thread.disable = self._disable

    def end_call(self) -> None:
        """The thread has run its model."""
        disable, self._thread.disable = self._thread.disable, None
        if disable is not None:
            disable()

    def stop(self) -> None:
        """Announce no longer."""
        if self._is_on:
            self._is_on = False
            # A process that is ended in the middle of a collective cannot.
            with contextlib.suppress(RuntimeError):
                self._disable()
            getattr(self._torch.autograd.profiler, "_run_on_profiler_stop", lambda: None)()

    def _give_way_to(self, owner: Any, name: str) -> None:
        original = getattr(owner, name, None)
        if original is None:
            return

        @functools.wraps(original)
        def starting(*arguments: Any, **options: Any) -> Any:
            self.stop()
            return original(*arguments, **options)

        setattr(owner, name, starting)
