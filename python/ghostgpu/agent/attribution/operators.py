"""Makes PyTorch's profiler announce every operator to the stand-in library.

It runs in the mode made for NVIDIA's tools, which puts an NVTX range with the operator's name
around each. If the script starts a profiler of its own, ours gives way: only one can be on.

The profiler announces the operators of the thread that started it, and of that thread's backward
passes. Other threads, such as those of `DataParallel`, start it themselves while they run a model.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from typing import Any, Callable


class _Thread(threading.local):
    """The state of the profiler in one thread."""

    is_announcing = False
    """Whether this thread started the profiler for good, not just for one call of a model."""
    disable: Callable[[], object] | None = None
    """Stops the profiler that the thread started for one call of a model."""


class Operators:
    """Starts and stops the profiler that announces operators."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._is_on = False
        self._stops_next = False
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
        # Not `emit_nvtx`, which synchronises: that would create a context on the first card in a
        # process that is about to choose another, and only the script may wait for other ranks.
        getattr(profiler, "_run_on_profiler_start", lambda: None)()
        self._enable()
        self._is_on = True
        self._thread.is_announcing = True
        for name in ("_prepare_profiler", "_enable_profiler"):
            self._give_way_to(profiler, name)

    def begin_call(self) -> None:
        """A thread is about to run a model."""
        if self._thread.is_announcing:
            self.stop_if_due()
        if self._thread.is_announcing or not self._is_on:
            return
        try:
            self._enable()
        except RuntimeError:
            return  # already on: the thread runs a backward pass, or the script profiles it
        self._thread.disable = self._disable

    def end_call(self) -> None:
        """The thread has run its model."""
        disable, self._thread.disable = self._thread.disable, None
        if disable is not None:
            disable()

    def stop_before_next_call(self) -> None:
        """Stop announcing once no range is open.

        PyTorch prints an error for a range that outlives its profiler.
        """
        self._stops_next = True

    def stop_if_due(self) -> None:
        """Stop announcing if that was asked for inside a range."""
        if self._stops_next:
            self.stop()

    def stop(self) -> None:
        """Stop announcing."""
        if self._is_on:
            self._is_on = False
            self._stops_next = False
            # Fails in a process that is ended in the middle of a collective.
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
