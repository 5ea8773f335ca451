"""Removes the agent's own frames from the memory snapshots that a script takes, and from the
traceback that ends it.

The agent wraps PyTorch's functions, so it is on the stack of nearly every allocation. Without its
frames, snapshots and tracebacks of a rehearsal show the same stacks as those of a real run.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Callable, Optional

from .calls import put_around
from .guard import quietly

AGENT_FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep
"""How the paths of the agent's files begin."""


class OwnFrames:
    """Wraps PyTorch's function that makes snapshots, and Python's that prints tracebacks."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._are_kept = False

    def install(self) -> None:
        """Remove the agent's frames from all snapshots and printed tracebacks from now on."""
        put_around(self._torch, self._torch._C, "_cuda_memorySnapshot", self._without)
        print_traceback = sys.excepthook

        def hook(
            kind: type[BaseException], error: BaseException, traceback: Optional[TracebackType]
        ) -> None:
            quietly(remove_from_tracebacks)(error)
            print_traceback(kind, error, error.__traceback__ or traceback)

        sys.excepthook = hook

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """A context in which snapshots keep the agent's frames, for a reader that skips them
        itself: removing them from millions of events takes time."""
        self._are_kept = True
        try:
            yield
        finally:
            self._are_kept = False

    def _without(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def snapshot(*arguments: Any, **options: Any) -> Any:
            taken = original(*arguments, **options)
            if not self._are_kept:
                remove_own_frames(taken)
            return taken

        return snapshot


def remove_own_frames(snapshot: dict[str, Any]) -> None:
    """Remove the agent's frames from every stack of a snapshot."""
    # Blocks and events with the same stack share one list.
    seen: set[int] = set()
    segments = snapshot.get("segments", ())
    blocks = (segment.get("blocks", ()) for segment in segments)
    for holders in (segments, *blocks, *snapshot.get("device_traces", ())):
        for holder in holders:
            frames = holder.get("frames")
            if isinstance(frames, list) and id(frames) not in seen:
                seen.add(id(frames))
                if any(map(is_own, frames)):
                    frames[:] = [frame for frame in frames if not is_own(frame)]


def remove_from_tracebacks(error: BaseException) -> None:
    """Remove the agent's frames from the traceback of an exception and of those it came from."""
    seen: set[int] = set()
    open_errors: list[Optional[BaseException]] = [error]
    while open_errors:
        each = open_errors.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        open_errors += (each.__cause__, each.__context__)
        each.__traceback__ = _skip_own(each.__traceback__)
        place = each.__traceback__
        while place is not None:
            place.tb_next = _skip_own(place.tb_next)
            place = place.tb_next


def _skip_own(traceback: Optional[TracebackType]) -> Optional[TracebackType]:
    while traceback is not None and _is_own_code(traceback):
        traceback = traceback.tb_next
    return traceback


def _is_own_code(traceback: TracebackType) -> bool:
    return traceback.tb_frame.f_code.co_filename.startswith(AGENT_FOLDER)


def is_own(frame: Any) -> bool:
    """Whether a frame of a snapshot is in the agent's code."""
    return isinstance(frame, dict) and str(frame.get("filename", "")).startswith(AGENT_FOLDER)
