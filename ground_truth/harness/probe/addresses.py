"""Where `cudaMalloc` puts things and what each call takes from the card.

Every log row is `[operation, size, address, free bytes afterwards]`; `-` rows are frees.
"""

from __future__ import annotations

import random
from typing import Any

from . import cuda_calls as cuda
from .cuda_calls import GIB, MIB

LIVE_LIMIT = 48 * GIB
RANDOM_OPERATIONS = 3000
SEED = 20261115


class Recorder:
    """Allocates and frees, and records each address and the free memory afterwards."""

    def __init__(self) -> None:
        self.rows: list[list[Any]] = []
        self.live: list[tuple[int, int]] = []
        self.live_bytes = 0

    def allocate(self, size: int) -> int:
        try:
            address = cuda.malloc(size)
        except cuda.CudaCallFailed as failure:
            self.rows.append(["!", size, failure.code, cuda.free_bytes()])
            return 0
        self.live.append((address, size))
        self.live_bytes += size
        self.rows.append(["+", size, address, cuda.free_bytes()])
        return address

    def free_at(self, index: int) -> None:
        address, size = self.live.pop(index)
        cuda.release(address)
        self.live_bytes -= size
        self.rows.append(["-", size, address, cuda.free_bytes()])

    def free_all(self, newest_first: bool = False) -> None:
        while self.live:
            self.free_at(-1 if newest_first else 0)


def probe() -> dict[str, Any]:
    cuda.start_context()
    series = {
        "ascending": _ascending,
        "same_size_again": _same_size_again,
        "small_sizes": _small_sizes,
        "many_small": _many_small,
        "around_two_mib": _around_two_mib,
        "holes": _holes,
        "random": _random_operations,
        "random_unaligned": _random_unaligned,
    }
    answers: dict[str, Any] = {"free_at_start": cuda.free_bytes()}
    for name, run in series.items():
        recorder = Recorder()
        run(recorder)
        recorder.free_all()
        answers[name] = {"rows": recorder.rows, "free_after": cuda.free_bytes()}
    answers["fill_the_card"] = _fill_the_card()
    return answers


def _ascending(recorder: Recorder) -> None:
    for mebibytes in (
        2,
        4,
        6,
        8,
        10,
        12,
        16,
        20,
        20,
        20,
        22,
        32,
        64,
        100,
        128,
        256,
        500,
        512,
        1024,
        2048,
    ):
        recorder.allocate(mebibytes * MIB)
    recorder.free_all(newest_first=True)
    for _ in range(40):
        recorder.allocate(2 * MIB)
    for _ in range(40):
        recorder.allocate(20 * MIB)


def _same_size_again(recorder: Recorder) -> None:
    for size in (2 * MIB, 20 * MIB, 64 * MIB, 500 * MIB, 3 * GIB):
        for _ in range(4):
            recorder.allocate(size)
            recorder.free_at(-1)


def _small_sizes(recorder: Recorder) -> None:
    for size in (1, 255, 256, 257, 511, 512, 513, 4096, 65536, 131072, 524288):
        recorder.allocate(size)
        recorder.allocate(size)
    recorder.free_all()
    size = 1
    while size <= 3 * MIB:
        recorder.allocate(size)
        recorder.free_at(-1)
        size *= 2


def _many_small(recorder: Recorder) -> None:
    for size in (512, 300 * 1024, MIB - 512, MIB, MIB + 512):
        for _ in range(12):
            recorder.allocate(size)
        recorder.free_all()


def _around_two_mib(recorder: Recorder) -> None:
    for size in (2 * MIB - 512, 2 * MIB - 1, 2 * MIB, 2 * MIB + 1, 2 * MIB + 512, 3 * MIB):
        for _ in range(3):
            recorder.allocate(size)
    for size in (20 * MIB - 1, 20 * MIB + 1, 21 * MIB, 33 * MIB, 33 * MIB + 1):
        recorder.allocate(size)


def _holes(recorder: Recorder) -> None:
    """Frees every second block, then requests sizes that do and do not fit the holes exactly."""
    for _ in range(24):
        recorder.allocate(20 * MIB)
    for index in range(12):
        recorder.free_at(index)
    for mebibytes in (20, 10, 10, 22, 8, 20, 40, 2, 2, 64):
        recorder.allocate(mebibytes * MIB)


def _random_operations(recorder: Recorder) -> None:
    """Sizes that PyTorch's allocator asks for: 2 MiB, 20 MiB, and larger multiples of 2 MiB."""
    choose = random.Random(SEED)
    for _ in range(RANDOM_OPERATIONS):
        want_free = recorder.live and choose.random() < 0.48
        if want_free or recorder.live_bytes > LIVE_LIMIT:
            recorder.free_at(choose.randrange(len(recorder.live)))
            continue
        kind = choose.random()
        if kind < 0.35:
            recorder.allocate(2 * MIB)
        elif kind < 0.65:
            recorder.allocate(20 * MIB)
        else:
            recorder.allocate(2 * MIB * choose.randint(5, 250))


def _random_unaligned(recorder: Recorder) -> None:
    choose = random.Random(SEED + 1)
    for _ in range(400):
        if recorder.live and (choose.random() < 0.45 or recorder.live_bytes > LIVE_LIMIT):
            recorder.free_at(choose.randrange(len(recorder.live)))
        else:
            recorder.allocate(int(2 ** (choose.random() * 26)) + 1)


def _fill_the_card() -> dict[str, Any]:
    """Takes everything there is: how much is left when the card says no, at several sizes."""
    recorder = Recorder()
    for size in (GIB, 256 * MIB, 20 * MIB, 2 * MIB):
        while recorder.allocate(size):
            pass
    refused_small = [len(recorder.rows)]
    recorder.allocate(512)
    live = recorder.live_bytes
    rows = recorder.rows
    # The long run of equal allocations says little; its ends and the refusals say everything.
    kept = [row for row in rows if row[0] == "!"] + rows[:3] + rows[-12:]
    largest = {"live_bytes": live, "rows": kept, "count": len(rows), "small_at": refused_small}
    recorder.free_all()
    answers: dict[str, Any] = {"in_pieces": largest, "free_after": cuda.free_bytes()}
    answers["one_block"] = _largest_single_block()
    return answers


def _largest_single_block() -> dict[str, int]:
    """The largest multiple of 2 MiB that one `cudaMalloc` grants, by bisection."""
    free = cuda.free_bytes()
    low, high = 0, free // (2 * MIB) + 1
    while high - low > 1:
        middle = (low + high) // 2
        try:
            cuda.release(cuda.malloc(middle * 2 * MIB))
            low = middle
        except cuda.CudaCallFailed:
            high = middle
    return {"free": free, "largest": low * 2 * MIB}
