"""The few CUDA runtime, driver and NVML functions that the probes call, through ctypes.

Names are looked up among the libraries already in the process first, so that a preloaded
stand-in answers when there is one, and in the vendor's shared libraries otherwise.
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char, c_int, c_size_t, c_uint, c_uint64, c_ulonglong, c_void_p
from typing import Any, Optional

MIB = 1 << 20
GIB = 1 << 30


class CudaCallFailed(RuntimeError):
    """A CUDA function returned something other than success."""

    def __init__(self, function: str, code: int) -> None:
        super().__init__(f"{function} returned {code}")
        self.function = function
        self.code = code


def _open(*names: str) -> Optional[ctypes.CDLL]:
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


class Library:
    """Functions of one shared library, found by name when first used."""

    def __init__(self, *file_names: str) -> None:
        self._process = ctypes.CDLL(None)
        self._file = _open(*file_names)

    def find(self, name: str) -> Any:
        for source in (self._process, self._file):
            if source is not None:
                try:
                    return getattr(source, name)
                except AttributeError:
                    continue
        raise LookupError(f"{name} is in none of the loaded libraries")

    def call(self, name: str, *arguments: Any) -> int:
        """Calls `name` and returns its status, whatever it is."""
        function = self.find(name)
        function.restype = c_int
        return int(function(*arguments))

    def check(self, name: str, *arguments: Any) -> None:
        status = self.call(name, *arguments)
        if status != 0:
            raise CudaCallFailed(name, status)


runtime = Library("libcudart.so.13", "libcudart.so.12", "libcudart.so")
driver = Library("libcuda.so.1")
nvml = Library("libnvidia-ml.so.1")


def start_context() -> None:
    """Makes device 0 current and creates its context."""
    runtime.check("cudaSetDevice", 0)
    runtime.check("cudaFree", c_void_p(0))


def free_and_total() -> tuple[int, int]:
    free, total = c_size_t(), c_size_t()
    runtime.check("cudaMemGetInfo", byref(free), byref(total))
    return free.value, total.value


def free_bytes() -> int:
    return free_and_total()[0]


def malloc(size: int) -> int:
    """Address of a new allocation; raises `CudaCallFailed` when the card says no."""
    pointer = c_void_p()
    try:
        runtime.check("cudaMalloc", byref(pointer), c_size_t(size))
    except CudaCallFailed:
        runtime.call("cudaGetLastError")
        raise
    return int(pointer.value or 0)


def release(address: int) -> None:
    runtime.check("cudaFree", c_void_p(address))


class AllocationProperties(ctypes.Structure):
    """CUmemAllocationProp: pinned memory on one device."""

    _fields_ = [
        ("type", c_int),
        ("requested_handle_types", c_int),
        ("location_type", c_int),
        ("location_id", c_int),
        ("win32_metadata", c_void_p),
        ("flags", c_char * 8),
    ]

    @classmethod
    def on_device(cls, device: int, handle_types: int = 0) -> AllocationProperties:
        properties = cls()
        properties.type = 1
        properties.requested_handle_types = handle_types
        properties.location_type = 1
        properties.location_id = device
        return properties


class AccessDescription(ctypes.Structure):
    """CUmemAccessDesc: read and write from one device."""

    _fields_ = [("location_type", c_int), ("location_id", c_int), ("flags", c_int)]


class NvmlMemory(ctypes.Structure):
    _fields_ = [("total", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong)]


class NvmlMemoryV2(ctypes.Structure):
    _fields_ = [
        ("version", c_uint),
        ("total", c_ulonglong),
        ("reserved", c_ulonglong),
        ("free", c_ulonglong),
        ("used", c_ulonglong),
    ]


class NvmlProcess(ctypes.Structure):
    """nvmlProcessInfo_t as used by `nvmlDeviceGetComputeRunningProcesses_v3`."""

    _fields_ = [
        ("pid", c_uint),
        ("used_bytes", c_ulonglong),
        ("gpu_instance", c_uint),
        ("compute_instance", c_uint),
    ]


def nvml_device(index: int = 0) -> c_void_p:
    nvml.check("nvmlInit_v2")
    handle = c_void_p()
    nvml.check("nvmlDeviceGetHandleByIndex_v2", c_uint(index), byref(handle))
    return handle


def nvml_memory(handle: c_void_p) -> dict[str, Any]:
    first = NvmlMemory()
    nvml.check("nvmlDeviceGetMemoryInfo", handle, byref(first))
    second = NvmlMemoryV2()
    second.version = ctypes.sizeof(NvmlMemoryV2) | (2 << 24)
    status = nvml.call("nvmlDeviceGetMemoryInfo_v2", handle, byref(second))
    return {
        "v1": {"total": first.total, "free": first.free, "used": first.used},
        "v2": {
            "status": status,
            "total": second.total,
            "reserved": second.reserved,
            "free": second.free,
            "used": second.used,
        },
    }


def nvml_processes(handle: c_void_p) -> list[dict[str, int]]:
    count = c_uint(64)
    table = (NvmlProcess * 64)()
    nvml.check("nvmlDeviceGetComputeRunningProcesses_v3", handle, byref(count), table)
    return [{"pid": row.pid, "used_bytes": row.used_bytes} for row in table[: min(count.value, 64)]]


def granularities(device: int, handle_types: int) -> dict[str, int]:
    """The minimum and recommended sizes that `cuMemCreate` accepts."""
    properties = AllocationProperties.on_device(device, handle_types)
    answer = {}
    for name, option in (("minimum", 0), ("recommended", 1)):
        size = c_size_t()
        driver.check("cuMemGetAllocationGranularity", byref(size), byref(properties), c_int(option))
        answer[name] = size.value
    return answer


def create_physical(size: int, device: int, handle_types: int) -> int:
    handle = c_uint64()
    properties = AllocationProperties.on_device(device, handle_types)
    driver.check("cuMemCreate", byref(handle), c_size_t(size), byref(properties), c_ulonglong(0))
    return handle.value
