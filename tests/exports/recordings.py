"""Recordings of a real card, and what the tests ask for to export them."""

from __future__ import annotations

import gzip
import pickle
from pathlib import Path
from typing import Any, Protocol

REPOSITORY = Path(__file__).resolve().parents[2]
RECORDINGS = REPOSITORY / "ground_truth/allocator/h200"

WITH_STACKS = ["unet+default", "bert+default"]
WITHOUT_STACKS = [
    "caught-out-of-memory+default-3GiB",
    "caught-out-of-memory+expandable-3GiB",
    "captured-graph+default",
    "two-streams+default",
    "memory-pools+default",
]
"""Out of memory, expandable segments, private pools, frees that wait, nothing live at the end."""

Snapshot = dict[str, Any]


class Export(Protocol):
    """Exports a snapshot's file and gives the file that was written."""

    def __call__(self, snapshot: Path, to: str, *options: str) -> Path: ...


class CutOff(Protocol):
    """Writes a recording again without its first events, as a full ring leaves it."""

    def __call__(self, snapshot: Path, lost: int) -> Path: ...


def recording(name: str) -> Path:
    return RECORDINGS / f"{name}.pickle.gz"


def read(path: Path) -> Snapshot:
    """A recording of ours, through Python's own unpickler."""
    data = path.read_bytes()
    content = gzip.decompress(data) if path.suffix == ".gz" else data
    loaded: Snapshot = pickle.loads(content)
    return loaded
