"""How the driver's stream-ordered pool (`cudaMallocAsync`) takes and gives back memory."""

from __future__ import annotations

from ctypes import byref, c_int, c_size_t, c_ulonglong, c_void_p
from typing import Any

from . import cuda_calls as cuda
from .cuda_calls import GIB, MIB

RESERVED_NOW, RESERVED_HIGH, USED_NOW, USED_HIGH = 5, 6, 7, 8
RELEASE_THRESHOLD = 4


class Pool:
    """The default pool of device 0, with a log of what each call did to it."""

    def __init__(self) -> None:
        self.handle = c_void_p()
        cuda.runtime.check("cudaDeviceGetDefaultMemPool", byref(self.handle), c_int(0))
        self.rows: list[list[Any]] = []
        self.live: list[tuple[int, int]] = []

    def read(self, attribute: int) -> int:
        value = c_ulonglong()
        cuda.runtime.check("cudaMemPoolGetAttribute", self.handle, c_int(attribute), byref(value))
        return value.value

    def keep_everything(self) -> None:
        """As PyTorch does: memory stays in the pool until it is trimmed."""
        value = c_ulonglong(0xFFFFFFFFFFFFFFFF)
        cuda.runtime.check(
            "cudaMemPoolSetAttribute", self.handle, c_int(RELEASE_THRESHOLD), byref(value)
        )

    def note(self, action: str, size: int, address: int) -> None:
        numbers = [self.read(a) for a in (RESERVED_NOW, RESERVED_HIGH, USED_NOW, USED_HIGH)]
        self.rows.append([action, size, address, *numbers, cuda.free_bytes()])

    def allocate(self, size: int) -> None:
        pointer = c_void_p()
        status = cuda.runtime.call("cudaMallocAsync", byref(pointer), c_size_t(size), c_void_p(0))
        if status != 0:
            cuda.runtime.call("cudaGetLastError")
            self.note("!", size, status)
            return
        self.live.append((int(pointer.value or 0), size))
        self.note("+", size, self.live[-1][0])

    def free_at(self, index: int) -> None:
        address, size = self.live.pop(index)
        cuda.runtime.check("cudaFreeAsync", c_void_p(address), c_void_p(0))
        self.note("-", size, address)

    def synchronize(self) -> None:
        cuda.runtime.check("cudaDeviceSynchronize")
        self.note("sync", 0, 0)

    def trim(self) -> None:
        cuda.runtime.check("cudaMemPoolTrimTo", self.handle, c_size_t(0))
        self.note("trim", 0, 0)


def probe_as_delivered() -> list[list[Any]]:
    """With the release threshold of zero that a new process finds."""
    cuda.start_context()
    pool = Pool()
    pool.note("start", 0, 0)
    for size in (1, 512, MIB, 2 * MIB, 20 * MIB, 100 * MIB):
        pool.allocate(size)
    while pool.live:
        pool.free_at(0)
    pool.synchronize()
    pool.allocate(20 * MIB)
    pool.free_at(0)
    pool.synchronize()
    pool.trim()
    return pool.rows


def probe_as_pytorch_uses_it() -> list[list[Any]]:
    cuda.start_context()
    pool = Pool()
    pool.keep_everything()
    pool.note("start", 0, 0)
    for size in (1, 256, 512, 513, 4096, 65536, 65537, MIB, MIB + 1, 2 * MIB, 3 * MIB):
        pool.allocate(size)
    for size in (
        20 * MIB,
        32 * MIB,
        33 * MIB,
        64 * MIB,
        100 * MIB,
        100 * MIB + 1,
        500 * MIB,
        GIB,
        3 * GIB,
    ):
        pool.allocate(size)
    for index in range(len(pool.live) // 2):
        pool.free_at(index)
    pool.synchronize()
    for size in (50 * MIB, 10 * MIB, 300 * MIB, 700 * MIB, 2 * GIB):
        pool.allocate(size)
    while pool.live:
        pool.free_at(-1)
    pool.synchronize()
    for size in (4 * GIB, GIB, 200 * GIB):
        pool.allocate(size)
    while pool.live:
        pool.free_at(0)
    pool.synchronize()
    pool.trim()
    for _ in range(40):
        pool.allocate(3 * MIB)
    while pool.live:
        pool.free_at(0)
    pool.synchronize()
    pool.trim()
    return pool.rows
