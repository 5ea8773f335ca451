"""What the card says about itself: attributes, properties, limits, pools and NVML readings."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char, c_int, c_size_t, c_uint, c_ulonglong, c_void_p
from typing import Any, Callable

from . import cuda_calls as cuda

LAST_ATTRIBUTE = 160
PROPERTY_BYTES = 1008
LIMITS = (
    "stack_size",
    "printf_fifo_size",
    "malloc_heap_size",
    "dev_runtime_sync_depth",
    "dev_runtime_pending_launch_count",
    "max_l2_fetch_granularity",
    "persisting_l2_cache_size",
)


def probe() -> dict[str, Any]:
    before_context = _try(lambda: cuda.nvml_memory(cuda.nvml_device()))
    cuda.start_context()
    return {
        "nvml_memory_before_context": before_context,
        "memory_after_context": dict(zip(("free", "total"), cuda.free_and_total())),
        "versions": _versions(),
        "runtime_attributes": _attributes("cudaDeviceGetAttribute", cuda.runtime),
        "driver_attributes": _attributes("cuDeviceGetAttribute", cuda.driver),
        "properties_hex": _property_bytes(),
        "limits": _limits(),
        "stream_priorities": _stream_priorities(),
        "default_pool": _default_pool(),
        "pci_bus_id": _pci_bus_id(),
        "driver_total_bytes": _driver_total(),
        "context": _context_facts(),
        "nvml": _nvml(),
    }


def _try(read: Callable[[], Any]) -> Any:
    """The reading, or the reason why there is none: one missing call must not lose the others."""
    try:
        return read()
    except Exception as failure:  # noqa: BLE001
        return {"failed": str(failure)}


def _integer(
    library: cuda.Library, name: str, *arguments: Any, kind: Any = c_int
) -> dict[str, Any]:
    value = kind()
    status = library.call(name, byref(value), *arguments)
    return {"status": status, "value": value.value}


def _versions() -> dict[str, Any]:
    return {
        "driver": _try(lambda: _integer(cuda.runtime, "cudaDriverGetVersion")),
        "runtime": _try(lambda: _integer(cuda.runtime, "cudaRuntimeGetVersion")),
    }


def _attributes(function: str, library: cuda.Library) -> Any:
    def read() -> dict[str, Any]:
        answers = {}
        for attribute in range(1, LAST_ATTRIBUTE + 1):
            answers[str(attribute)] = _integer(library, function, c_int(attribute), c_int(0))
        cuda.runtime.call("cudaGetLastError")
        return answers

    return _try(read)


def _property_bytes() -> Any:
    def read() -> str:
        buffer = (c_char * 4096)()
        cuda.runtime.check("cudaGetDeviceProperties", buffer, c_int(0))
        return bytes(buffer.raw[:PROPERTY_BYTES]).hex()

    return _try(read)


def _limits() -> dict[str, Any]:
    answers = {}
    for number, name in enumerate(LIMITS):
        answers[name] = _try(
            lambda n=number: _integer(cuda.runtime, "cudaDeviceGetLimit", c_int(n), kind=c_size_t)
        )
    cuda.runtime.call("cudaGetLastError")
    return answers


def _stream_priorities() -> Any:
    def read() -> list[int]:
        least, greatest = c_int(), c_int()
        cuda.runtime.check("cudaDeviceGetStreamPriorityRange", byref(least), byref(greatest))
        return [least.value, greatest.value]

    return _try(read)


def _default_pool() -> Any:
    def read() -> dict[str, Any]:
        pool = c_void_p()
        cuda.runtime.check("cudaDeviceGetDefaultMemPool", byref(pool), c_int(0))
        answers: dict[str, Any] = {}
        for attribute in range(1, 17):
            value = c_ulonglong(0)
            status = cuda.runtime.call(
                "cudaMemPoolGetAttribute", pool, c_int(attribute), byref(value)
            )
            answers[str(attribute)] = {"status": status, "value": value.value}
        cuda.runtime.call("cudaGetLastError")
        return answers

    return _try(read)


def _pci_bus_id() -> Any:
    def read() -> str:
        text = (c_char * 64)()
        cuda.runtime.check("cudaDeviceGetPCIBusId", text, c_int(64), c_int(0))
        return bytes(text.value).decode()

    return _try(read)


def _driver_total() -> Any:
    return _try(lambda: _integer(cuda.driver, "cuDeviceTotalMem_v2", c_int(0), kind=c_size_t))


def _context_facts() -> dict[str, Any]:
    return {
        "flags": _try(lambda: _integer(cuda.driver, "cuCtxGetFlags", kind=c_uint)),
        "runtime_flags": _try(lambda: _integer(cuda.runtime, "cudaGetDeviceFlags", kind=c_uint)),
        "module_loading_mode": _try(
            lambda: _integer(cuda.driver, "cuModuleGetLoadingMode", kind=c_int)
        ),
    }


def _nvml() -> dict[str, Any]:
    handle = _try(cuda.nvml_device)
    if isinstance(handle, dict):
        return handle
    # The full UUID and serial number name one physical card; only its public facts are kept.
    return {
        "memory": _try(lambda: cuda.nvml_memory(handle)),
        "processes": _try(lambda: [row["used_bytes"] for row in cuda.nvml_processes(handle)]),
        "name": _try(lambda: _text("nvmlDeviceGetName", handle)),
        "driver_version": _try(lambda: _text("nvmlSystemGetDriverVersion")),
        "nvml_version": _try(lambda: _text("nvmlSystemGetNVMLVersion")),
        "cuda_driver_version": _try(
            lambda: _integer(cuda.nvml, "nvmlSystemGetCudaDriverVersion_v2")
        ),
        "bar1": _try(lambda: _bar1(handle)),
        "memory_bus_bits": _try(lambda: _indexed("nvmlDeviceGetMemoryBusWidth", handle)),
        "gpu_cores": _try(lambda: _indexed("nvmlDeviceGetNumGpuCores", handle)),
        "architecture": _try(lambda: _indexed("nvmlDeviceGetArchitecture", handle)),
        "power_limit_milliwatts": _try(lambda: _indexed("nvmlDeviceGetEnforcedPowerLimit", handle)),
    }


def _indexed(function: str, handle: c_void_p) -> dict[str, Any]:
    value = c_uint()
    status = cuda.nvml.call(function, handle, byref(value))
    return {"status": status, "value": value.value}


def _text(function: str, *arguments: Any) -> str:
    buffer = ctypes.create_string_buffer(256)
    cuda.nvml.check(function, *arguments, buffer, c_uint(256))
    return buffer.value.decode()


def _bar1(handle: c_void_p) -> dict[str, int]:
    reading = cuda.NvmlMemory()
    cuda.nvml.check("nvmlDeviceGetBAR1MemoryInfo", handle, byref(reading))
    return {"total": reading.total, "free": reading.free, "used": reading.used}
