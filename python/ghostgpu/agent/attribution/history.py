"""PyTorch's own history of its allocator, with Python stacks, from CUDA's start to the end."""

from __future__ import annotations

import pickle
import sys
from typing import Any

from ..own_frames import OwnFrames


class History:
    """Makes PyTorch record its history, and writes it to a file."""

    def __init__(self, torch: Any, own_frames: OwnFrames) -> None:
        self._torch = torch
        self._own_frames = own_frames

    def start(self) -> None:
        """Record from now on; raises RuntimeError for an allocator that keeps no history."""
        # Python stacks only: symbolising a C++ stack takes milliseconds.
        self._torch.cuda.memory._record_memory_history(
            "all", context="alloc", stacks="python", max_entries=sys.maxsize
        )

    def write(self, path: str) -> None:
        """Write the history so far to a file."""
        # Not `torch._C._cuda_memorySnapshot`, whose arguments differ between releases.
        with self._own_frames.kept():
            snapshot = self._torch.cuda.memory._snapshot()
        with open(path, "wb") as file:
            pickle.dump(snapshot, file, protocol=4)

    def stop(self) -> None:
        """Stop recording and free what was recorded."""
        self._torch.cuda.memory._record_memory_history(None)
