"""A trace replayed in the plainest way, for comparison. Knows nothing of the Rust code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional

Entry = dict[str, Any]
Frames = tuple[tuple[str, str, int], ...]
"""Function, file and line, innermost first."""


@dataclass(frozen=True)
class Allocation:
    """What one `alloc` made."""

    bytes: int
    frames: Frames
    stream: int


@dataclass
class Replay:
    """Sums after each event, and what was live when most was."""

    active: list[int]
    allocated: list[int]
    reserved: list[int]
    peak_event: int
    at_peak: dict[int, Allocation]
    at_end: dict[int, Allocation]


def frames_of(entry: Entry) -> Frames:
    return tuple((f["name"], f["filename"], f["line"]) for f in entry.get("frames", []))


def replay(trace: Sequence[Entry], first: int = 0) -> Replay:
    """Replays a trace from the process's beginning; the peak is one from event `first` on."""
    live: dict[int, Allocation] = {}
    sums = {"active": 0, "allocated": 0, "reserved": 0}
    found = Replay([], [], [], -1, {}, {})
    highest: Optional[int] = None
    for at, entry in enumerate(trace):
        if at == first:
            # What there was before the first event that is looked at.
            highest, found.at_peak = sums["active"], dict(live)
        size, action = entry["size"], entry["action"]
        if action == "alloc":
            live[entry["addr"]] = Allocation(size, frames_of(entry), entry["stream"])
            sums["active"] += size
            sums["allocated"] += size
        elif action == "free_requested":
            sums["allocated"] -= size
        elif action == "free_completed":
            del live[entry["addr"]]
            sums["active"] -= size
        elif action in ("segment_alloc", "segment_map"):
            sums["reserved"] += size
        elif action in ("segment_free", "segment_unmap"):
            sums["reserved"] -= size
        if highest is not None and sums["active"] > highest:
            highest, found.peak_event, found.at_peak = sums["active"], at, dict(live)
        found.active.append(sums["active"])
        found.allocated.append(sums["allocated"])
        found.reserved.append(sums["reserved"])
    found.at_end = live
    return found


def bytes_by_frames(live: dict[int, Allocation]) -> Counter[Frames]:
    """Sums of what is live, by stack; without a stack, by the empty one."""
    sums: Counter[Frames] = Counter()
    for allocation in live.values():
        sums[allocation.frames] += allocation.bytes
    return sums
