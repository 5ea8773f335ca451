"""Removes the agent's own frames from the memory snapshots that a script takes.

The agent wraps PyTorch's functions, so it is on the stack of nearly every allocation. Without its
frames, a snapshot of a rehearsal shows the same stacks as one of a real run.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any, Callable

from .calls import put_around

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


class OwnFrames:
    """Wraps PyTorch's function that makes snapshots."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._are_kept = False

    def install(self) -> None:
        """Remove the agent's frames from all snapshots from now on."""
        put_around(self._torch, self._torch._C, "_cuda_memorySnapshot", self._without)

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


def is_own(frame: Any) -> bool:
    """Whether a frame of a snapshot is in the agent's code."""
    return isinstance(frame, dict) and str(frame.get("filename", "")).startswith(_HERE)
