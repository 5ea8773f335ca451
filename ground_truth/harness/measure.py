"""Readings of PyTorch's allocator and of the card, taken the same way on both sides."""

from __future__ import annotations

import gc
import hashlib
import os
import time
from typing import Any

import torch

from probe import cuda_calls

#: One letter per allocator event, so that thousands of them stay small.
LETTERS = {
    "alloc": "a",
    "free_requested": "r",
    "free_completed": "f",
    "segment_alloc": "S",
    "segment_free": "F",
    "segment_map": "M",
    "segment_unmap": "U",
    "oom": "o",
}
#: Placement is kept as one short digest per this many events: enough to find the first difference.
EVENTS_PER_DIGEST = 256


def reading() -> dict[str, Any]:
    """The allocator's counters since the start of the process, and the card's own."""
    torch.cuda.synchronize()
    statistics = torch.cuda.memory_stats()
    free, total = torch.cuda.mem_get_info()
    return {
        "peak_allocated_bytes": torch.cuda.max_memory_allocated(),
        "peak_reserved_bytes": torch.cuda.max_memory_reserved(),
        "allocated_bytes": torch.cuda.memory_allocated(),
        "reserved_bytes": torch.cuda.memory_reserved(),
        "peak_active_bytes": statistics.get("active_bytes.all.peak"),
        "peak_requested_bytes": statistics.get("requested_bytes.all.peak"),
        "inactive_split_bytes": statistics.get("inactive_split_bytes.all.current"),
        "allocations": statistics.get("allocation.all.allocated"),
        "segments": statistics.get("segment.all.allocated"),
        "segments_freed": statistics.get("segment.all.freed"),
        "retries": statistics.get("num_alloc_retries"),
        "ooms": statistics.get("num_ooms"),
        "on_card_bytes": total - free,
        "process_bytes": process_bytes(),
    }


def process_bytes() -> int | None:
    """What NVML says this process uses; None where it cannot say."""
    try:
        rows = cuda_calls.nvml_processes(cuda_calls.nvml_device(torch.cuda.current_device()))
    except (LookupError, OSError, cuda_calls.CudaCallFailed):
        return None
    mine = [row["used_bytes"] for row in rows if row["pid"] == os.getpid()]
    return mine[0] if mine else None


def wait_until_alone(limit_s: float) -> None:
    """Waits until the previous process has left the card.

    Its lock is free a moment before its memory is.
    """
    deadline = time.monotonic() + limit_s
    try:
        handle = cuda_calls.nvml_device(torch.cuda.current_device())
        while time.monotonic() < deadline:
            if all(row["pid"] == os.getpid() for row in cuda_calls.nvml_processes(handle)):
                return
            time.sleep(0.1)
    except (LookupError, OSError, cuda_calls.CudaCallFailed):
        return


class Recorder:
    """Takes a reading after every step, and the allocator's own history if it keeps one."""

    def __init__(self, *, with_events: bool) -> None:
        self.before_model: dict[str, Any] = {}
        self.steps: list[dict[str, Any]] = []
        self._with_events = with_events

    def start(self) -> None:
        torch.cuda.init()
        self.before_model = reading()
        # The async backend keeps no history.
        if self._with_events and torch.cuda.get_allocator_backend() == "native":
            # Without stacks: collecting them has been seen to disturb a run.
            torch.cuda.memory._record_memory_history("all", context=None, stacks="python")
        else:
            self._with_events = False
        # Automatic collection happens at moments that differ between Python versions, and a
        # collected cycle can hold tensors. Both sides collect after each step instead.
        gc.collect()
        gc.disable()

    def step(self) -> None:
        gc.collect()
        self.steps.append(reading())

    def events(self) -> dict[str, Any] | None:
        if not self._with_events:
            return None
        trace = torch.cuda.memory._snapshot()["device_traces"][0]
        torch.cuda.memory._record_memory_history(None)
        return compact(trace)


def compact(trace: list[dict[str, Any]]) -> dict[str, Any]:
    """The history as a string of letters, a list of sizes, and digests of the placement."""
    rows = [row for row in trace if row["action"] in LETTERS]
    actions = "".join(LETTERS[row["action"]] for row in rows)
    sizes = [int(row["size"]) for row in rows]
    places = placement(rows)
    digests = []
    for start in range(0, len(places), EVENTS_PER_DIGEST):
        text = ";".join(places[start : start + EVENTS_PER_DIGEST])
        digests.append(hashlib.sha256(text.encode()).hexdigest()[:12])
    return {"actions": actions, "sizes": sizes, "placement_digests": digests}


def placement(rows: list[dict[str, Any]]) -> list[str]:
    """For each event the segment, by order of creation, and the offset in it.

    Addresses themselves differ from run to run; where a block lies in which segment does not.
    """
    segments: dict[int, tuple[int, int]] = {}
    starts: list[int] = []
    places = []
    created = 0
    for row in rows:
        address = int(row["addr"])
        if row["action"] in ("segment_alloc", "segment_map"):
            if row["action"] == "segment_alloc" or not _inside(segments, address):
                segments[address] = (created, int(row["size"]))
                created += 1
            else:
                start = _inside(segments, address) or address
                number, size = segments[start]
                segments[start] = (number, max(size, address + int(row["size"]) - start))
        starts = sorted(segments) if row["action"].startswith("segment") else starts
        holder = _last_at_or_below(starts, address)
        number = segments[holder][0] if holder is not None else -1
        places.append(f"{number}+{address - holder if holder is not None else 0}")
        if row["action"] == "segment_free":
            segments.pop(address, None)
            starts = sorted(segments)
    return places


def _inside(segments: dict[int, tuple[int, int]], address: int) -> int | None:
    """The segment that ends where `address` begins, or holds it: an expandable one that grew."""
    for start, (_, size) in segments.items():
        if start <= address <= start + size:
            return start
    return None


def _last_at_or_below(starts: list[int], address: int) -> int | None:
    from bisect import bisect_right

    index = bisect_right(starts, address)
    return starts[index - 1] if index else None
