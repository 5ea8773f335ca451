"""The virtual-memory interface behind expandable segments: granularity, addresses, cost."""

from __future__ import annotations

from ctypes import byref, c_size_t, c_uint64, c_ulonglong
from typing import Any

from . import cuda_calls as cuda
from .cuda_calls import GIB, MIB

HANDLE_TYPES = {"none": 0, "posix_file_descriptor": 1, "fabric": 8}


def probe() -> dict[str, Any]:
    cuda.start_context()
    total = cuda.free_and_total()[1]
    return {
        "granularity": _granularity(),
        "reserve": _reservations(total),
        "create_odd_sizes": _odd_sizes(),
        "grow_and_shrink": _grow_and_shrink(total),
        "fill": _fill(),
    }


def _granularity() -> dict[str, Any]:
    answers: dict[str, Any] = {}
    for name, types in HANDLE_TYPES.items():
        try:
            answers[name] = cuda.granularities(0, types)
        except cuda.CudaCallFailed as failure:
            answers[name] = {"status": failure.code}
    return answers


def _reserve(size: int) -> tuple[int, int]:
    address = c_uint64()
    status = cuda.driver.call(
        "cuMemAddressReserve",
        byref(address),
        c_size_t(size),
        c_size_t(0),
        c_uint64(0),
        c_ulonglong(0),
    )
    return status, address.value


def _give_back(address: int, size: int) -> int:
    return cuda.driver.call("cuMemAddressFree", c_uint64(address), c_size_t(size))


def _reservations(total: int) -> dict[str, Any]:
    """Reservations of the sizes PyTorch makes (1 1/8 of the card) beside ordinary allocations."""
    rows: list[list[Any]] = []
    held: list[tuple[int, int]] = []

    def reserve(size: int) -> None:
        status, address = _reserve(size)
        rows.append(["reserve", size, status, address, cuda.free_bytes()])
        if status == 0:
            held.append((address, size))

    plain = cuda.malloc(2 * MIB)
    rows.append(["malloc", 2 * MIB, 0, plain, cuda.free_bytes()])
    whole = total + total // 8
    for segment in (2 * MIB, 20 * MIB):
        for _ in range(3):
            reserve(segment * ((whole + segment - 1) // segment))
    for size in (2 * MIB, 4 * MIB, 20 * MIB, 64 * MIB, GIB):
        reserve(size)
    reserve(2 * MIB - 4096)
    address, size = held.pop(1)
    rows.append(["free", size, _give_back(address, size), address, cuda.free_bytes()])
    reserve(size)
    second = cuda.malloc(20 * MIB)
    rows.append(["malloc", 20 * MIB, 0, second, cuda.free_bytes()])
    for address, size in held:
        rows.append(["free", size, _give_back(address, size), address, cuda.free_bytes()])
    cuda.release(plain)
    cuda.release(second)
    return {"rows": rows}


def _odd_sizes() -> list[list[Any]]:
    rows: list[list[Any]] = []
    for size in (65536, MIB, 2 * MIB, 2 * MIB + 65536, 3 * MIB, 20 * MIB):
        before = cuda.free_bytes()
        try:
            handle = cuda.create_physical(size, 0, 1)
        except cuda.CudaCallFailed as failure:
            rows.append([size, failure.code, 0])
            continue
        rows.append([size, 0, before - cuda.free_bytes()])
        cuda.driver.check("cuMemRelease", c_uint64(handle))
    return rows


def _grow_and_shrink(total: int) -> dict[str, Any]:
    """Maps 20 MiB pieces one after another as an expandable segment does, then unmaps them."""
    piece = 20 * MIB
    size = piece * ((total + total // 8 + piece - 1) // piece)
    status, base = _reserve(size)
    rows: list[list[Any]] = [["reserve", size, status, base, cuda.free_bytes()]]
    access = cuda.AccessDescription(1, 0, 3)
    for index in range(60):
        handle = cuda.create_physical(piece, 0, 1)
        rows.append(["create", piece, 0, index, cuda.free_bytes()])
        place = c_uint64(base + index * piece)
        cuda.driver.check(
            "cuMemMap", place, c_size_t(piece), c_size_t(0), c_uint64(handle), c_ulonglong(0)
        )
        cuda.driver.check("cuMemSetAccess", place, c_size_t(piece), byref(access), c_size_t(1))
        rows.append(["map", piece, 0, place.value, cuda.free_bytes()])
        # PyTorch keeps the handle until it unmaps; releasing it now keeps the memory alive too,
        # because the mapping holds a reference, and leaves less to clean up.
        cuda.driver.check("cuMemRelease", c_uint64(handle))
    for index in range(60):
        place = c_uint64(base + index * piece)
        cuda.driver.check("cuMemUnmap", place, c_size_t(piece))
        rows.append(["unmap", piece, 0, place.value, cuda.free_bytes()])
    rows.append(["free", size, _give_back(base, size), base, cuda.free_bytes()])
    return {"rows": rows}


def _fill() -> dict[str, Any]:
    """Creates physical memory until the card says no."""
    handles: list[int] = []
    refusals: list[list[int]] = []
    for size in (GIB, 20 * MIB, 2 * MIB):
        while True:
            try:
                handles.append(cuda.create_physical(size, 0, 1))
            except cuda.CudaCallFailed as failure:
                refusals.append([size, failure.code, cuda.free_bytes(), len(handles)])
                break
    for handle in handles:
        cuda.driver.check("cuMemRelease", c_uint64(handle))
    return {"refusals": refusals, "free_after": cuda.free_bytes()}
