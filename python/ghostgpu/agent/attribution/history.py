"""PyTorch's own history of its allocator, with Python stacks, from CUDA's start to the end."""

from __future__ import annotations

import pickle
import sys
from typing import Any

from ..own_frames import OwnFrames


class History:
    """Has PyTorch record, and writes down what it recorded."""

    def __init__(self, torch: Any, own_frames: OwnFrames) -> None:
        self._torch = torch
        self._own_frames = own_frames

    def start(self) -> None:
        """Record from now on; raises RuntimeError for an allocator that keeps no history."""
        # Stacks of Python alone: those of C++ would take milliseconds each to put into words.
        self._torch.cuda.memory._record_memory_history(
            "all", context="alloc", stacks="python", max_entries=sys.maxsize
        )

    def write(self, path: str) -> None:
        """Write the history so far to a file."""
        # The public function takes what this one expects of each release.
        with self._own_frames.kept():
            snapshot = self._torch.cuda.memory._snapshot()
        with open(path, "wb") as file:
            pickle.dump(snapshot, file, protocol=4)

    def stop(self) -> None:
        """Record no longer, and let go of what was recorded."""
        self._torch.cuda.memory._record_memory_history(None)
