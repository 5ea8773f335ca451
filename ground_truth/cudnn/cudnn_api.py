"""A thin way to cuDNN's public C interface from Python: load it, and speak its backend descriptors.

Numbers are those of the public headers `cudnn_graph_v9.h`, `cudnn_ops_v9.h`, `cudnn_adv_v9.h`.
"""

from __future__ import annotations

import ctypes
import glob
import json
import os
import site
import sys
from typing import Any, Iterable, List, Optional, Sequence, Tuple

FLOAT, DOUBLE, HALF, BFLOAT16 = 0, 1, 2, 9

TYPE_HANDLE, TYPE_DATA_TYPE, TYPE_BOOLEAN, TYPE_INT64 = 0, 1, 2, 3
TYPE_FLOAT, TYPE_DOUBLE, TYPE_CONVOLUTION_MODE, TYPE_HEUR_MODE = 4, 5, 7, 8
TYPE_KNOB, TYPE_NUMERICAL_NOTE, TYPE_DESCRIPTOR, TYPE_BEHAVIOR_NOTE = 9, 11, 15, 19
TYPE_INT32, TYPE_CHAR = 23, 24

DESC_CONVOLUTION, DESC_ENGINE, DESC_ENGINECFG, DESC_HEUR, DESC_PLAN = 1, 2, 3, 4, 5
DESC_KNOB_CHOICE, DESC_CONV_FORWARD, DESC_CONV_FILTER, DESC_CONV_DATA = 7, 10, 11, 12
DESC_GRAPH, DESC_TENSOR, DESC_DEVICEPROP = 15, 17, 38


class CudnnError(Exception):
    def __init__(self, what: str, status: int) -> None:
        super().__init__(f"{what}: status {status}")
        self.status = status


def library_folders() -> List[str]:
    roots = list(site.getsitepackages()) + [site.getusersitepackages()] + sys.path
    found: List[str] = []
    for root in roots:
        for pattern in ("nvidia/cudnn/lib", "nvidia/cu13/lib", "nvidia/*/lib", "torch/lib"):
            found.extend(sorted(glob.glob(os.path.join(root, pattern))))
    return list(dict.fromkeys(found))


def load() -> ctypes.CDLL:
    """Load cuDNN, and first what it opens by name (cuBLAS, NVRTC) so that it finds them."""
    folders = library_folders()
    for name in (
        "libcudart.so.*",
        "libnvJitLink.so.*",
        "libcublasLt.so.*",
        "libcublas.so.*",
        "libnvrtc.so.*",
    ):
        for folder in folders:
            for path in sorted(glob.glob(os.path.join(folder, name))):
                if ".alt." in path:
                    continue
                ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
                break
            else:
                continue
            break
    for folder in folders:
        path = os.path.join(folder, "libcudnn.so.9")
        if os.path.exists(path):
            library = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
            break
    else:
        library = ctypes.CDLL("libcudnn.so.9", mode=ctypes.RTLD_GLOBAL)
    library.cudnnGetVersion.restype = ctypes.c_size_t
    return library


class Backend:
    """The descriptor functions, with Python values in and out."""

    def __init__(self, library: ctypes.CDLL, handle: Optional[ctypes.c_void_p] = None) -> None:
        self.lib = library
        self.handle = handle

    def create(self, kind: int) -> ctypes.c_void_p:
        desc = ctypes.c_void_p()
        status = self.lib.cudnnBackendCreateDescriptor(kind, ctypes.byref(desc))
        if status:
            raise CudnnError(f"create descriptor {kind}", status)
        return desc

    def destroy(self, descs: Iterable[ctypes.c_void_p]) -> None:
        for desc in descs:
            self.lib.cudnnBackendDestroyDescriptor(desc)

    def finalize(self, desc: ctypes.c_void_p) -> int:
        return int(self.lib.cudnnBackendFinalize(desc))

    def _set(self, desc: ctypes.c_void_p, name: int, kind: int, count: int, data: Any) -> None:
        status = self.lib.cudnnBackendSetAttribute(
            desc, name, kind, ctypes.c_int64(count), ctypes.byref(data)
        )
        if status:
            raise CudnnError(f"set attribute {name}", status)

    def set_ints(self, desc: ctypes.c_void_p, name: int, values: Sequence[int]) -> None:
        self._set(desc, name, TYPE_INT64, len(values), (ctypes.c_int64 * len(values))(*values))

    def set_enum(self, desc: ctypes.c_void_p, name: int, kind: int, value: int) -> None:
        self._set(desc, name, kind, 1, ctypes.c_int(value))

    def set_bool(self, desc: ctypes.c_void_p, name: int, value: bool) -> None:
        self._set(desc, name, TYPE_BOOLEAN, 1, ctypes.c_bool(value))

    def set_int32(self, desc: ctypes.c_void_p, name: int, value: int) -> None:
        self._set(desc, name, TYPE_INT32, 1, ctypes.c_int32(value))

    def set_float(self, desc: ctypes.c_void_p, name: int, value: float) -> None:
        self._set(desc, name, TYPE_FLOAT, 1, ctypes.c_float(value))

    def set_descs(
        self, desc: ctypes.c_void_p, name: int, values: Sequence[ctypes.c_void_p]
    ) -> None:
        array = (ctypes.c_void_p * len(values))(*[value.value for value in values])
        self._set(desc, name, TYPE_DESCRIPTOR, len(values), array)

    def set_handle(self, desc: ctypes.c_void_p, name: int) -> None:
        assert self.handle is not None
        self._set(desc, name, TYPE_HANDLE, 1, self.handle)

    def set_text(self, desc: ctypes.c_void_p, name: int, text: str) -> None:
        raw = text.encode()
        self._set(desc, name, TYPE_CHAR, len(raw), ctypes.create_string_buffer(raw, len(raw) + 1))

    def get_int(self, desc: ctypes.c_void_p, name: int) -> Optional[int]:
        value, count = ctypes.c_int64(-1), ctypes.c_int64()
        status = self.lib.cudnnBackendGetAttribute(
            desc, name, TYPE_INT64, ctypes.c_int64(1), ctypes.byref(count), ctypes.byref(value)
        )
        return None if status or count.value != 1 else int(value.value)

    def get_enums(self, desc: ctypes.c_void_p, name: int, kind: int, room: int) -> List[int]:
        values, count = (ctypes.c_int * room)(), ctypes.c_int64()
        status = self.lib.cudnnBackendGetAttribute(
            desc, name, kind, ctypes.c_int64(room), ctypes.byref(count), ctypes.byref(values)
        )
        return [] if status else [int(values[i]) for i in range(min(room, count.value))]

    def get_descs(
        self, desc: ctypes.c_void_p, name: int, kind: int, room: int
    ) -> Tuple[List[ctypes.c_void_p], List[ctypes.c_void_p]]:
        """The filled descriptors, and all that were made (to be destroyed by the caller)."""
        made = [self.create(kind) for _ in range(room)]
        array = (ctypes.c_void_p * room)(*[one.value for one in made])
        count = ctypes.c_int64()
        status = self.lib.cudnnBackendGetAttribute(
            desc, name, TYPE_DESCRIPTOR, ctypes.c_int64(room), ctypes.byref(count), array
        )
        filled = 0 if status else min(room, int(count.value))
        return made[:filled], made

    def get_text(self, desc: ctypes.c_void_p, name: int) -> Optional[str]:
        count = ctypes.c_int64()
        status = self.lib.cudnnBackendGetAttribute(
            desc, name, TYPE_CHAR, ctypes.c_int64(0), ctypes.byref(count), None
        )
        if status or count.value <= 0:
            return None
        buffer = ctypes.create_string_buffer(count.value + 1)
        status = self.lib.cudnnBackendGetAttribute(
            desc, name, TYPE_CHAR, count, ctypes.byref(count), buffer
        )
        return None if status else buffer.raw[: count.value].rstrip(b"\0").decode(errors="replace")

    def device_from_text(self, text: str) -> ctypes.c_void_p:
        desc = self.create(DESC_DEVICEPROP)
        self.set_text(desc, 2702, text)
        status = self.finalize(desc)
        if status:
            raise CudnnError("device properties from JSON", status)
        return desc

    def device_from_id(self, device: int) -> ctypes.c_void_p:
        desc = self.create(DESC_DEVICEPROP)
        self.set_int32(desc, 2700, device)
        status = self.finalize(desc)
        if status:
            raise CudnnError("device properties from device id", status)
        return desc


H200_TEXT = json.dumps(
    {
        "maxGridSize": [2147483647, 65535, 65535],
        "maxBlockSize": [1024, 1024, 64],
        "regsPerBlock": 65536,
        "multiProcessorCount": 132,
        "warpSize": 32,
        "maxSharedMemoryPerBlock": 49152,
        "maxSharedMemoryPerBlockOptin": 232448,
        "reservedSharedMemoryPerBlock": 1024,
        "maxRegistersPerSM": 65536,
        "maxCtasPerSM": 32,
        "maxThreadsPerBlock": 1024,
        "maxThreadsPerSM": 2048,
        "pciDeviceId": 6,
        "isTccDriver": 0,
        "supportCoopLaunch": 1,
        "totalGlobalMem": 150109880320,
        "smClockRateKHz": 1980000,
        "memClockRateKHz": 3201000,
        "l2CacheSize": 62914560,
        "cudaDeviceId": 0,
        "deviceVer": 900,
        "driverVer": 13000,
        "deviceName": "NVIDIA H200",
    },
    separators=(",", ":"),
)


def strides_of(dims: List[int], layout: str) -> List[int]:
    """Strides of a packed tensor: `nchw`, or channels last."""
    order = list(range(len(dims)))
    if layout == "nhwc":
        order = [0] + order[2:] + [1]
    strides, running = [0] * len(dims), 1
    for axis in reversed(order):
        strides[axis] = running
        running *= dims[axis]
    return strides
