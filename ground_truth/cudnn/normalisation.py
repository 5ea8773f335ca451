"""Dropout states, batch normalisation and CTC loss: the sizes of the older interface."""

from __future__ import annotations

import ctypes
from typing import Any, Dict, List

import cudnn_api as api


def _tensor(lib: ctypes.CDLL, dtype: int, dims: List[int], strides: List[int]) -> ctypes.c_void_p:
    desc = ctypes.c_void_p()
    lib.cudnnCreateTensorDescriptor(ctypes.byref(desc))
    count = len(dims)
    status = lib.cudnnSetTensorNdDescriptor(
        desc, dtype, count, (ctypes.c_int * count)(*dims), (ctypes.c_int * count)(*strides)
    )
    if status:
        raise api.CudnnError("tensor", status)
    return desc


def dropout_states(lib: ctypes.CDLL, handle: ctypes.c_void_p) -> int:
    size = ctypes.c_size_t()
    status = lib.cudnnDropoutGetStatesSize(handle, ctypes.byref(size))
    if status:
        raise api.CudnnError("dropout states", status)
    return size.value


def batch_norms(lib: ctypes.CDLL, handle: ctypes.c_void_p) -> List[Dict[str, Any]]:
    shapes = [
        [n, c, s, s]
        for n in (1, 2, 8, 16, 32, 64)
        for c, s in (
            (3, 32),
            (16, 32),
            (64, 112),
            (64, 56),
            (72, 28),
            (128, 28),
            (256, 14),
            (512, 7),
            (1024, 14),
            (2048, 7),
            (100, 13),
            (24, 56),
            (4096, 4),
        )
    ]
    shapes += [
        [32, 64, 1, 1],
        [128, 512, 1, 1],
        [4, 32, 8, 56, 56],
        [2, 64, 16, 28, 28],
        [256, 64, 112, 112],
        [512, 256, 14, 14],
    ]
    rows = []
    for dims in shapes:
        for layout in ("nchw", "nhwc"):
            for dtype in (api.FLOAT, api.HALF, api.BFLOAT16):
                for mode in (0, 1, 2):
                    rows.append(_batch_norm(lib, handle, dims, layout, dtype, mode))
    return rows


def _batch_norm(
    lib: ctypes.CDLL, handle: ctypes.c_void_p, dims: List[int], layout: str, dtype: int, mode: int
) -> Dict[str, Any]:
    x = _tensor(lib, dtype, dims, api.strides_of(dims, layout))
    kept = [1, dims[1]] + [1] * (len(dims) - 2) if mode else [1] + dims[1:]
    scale = _tensor(lib, api.FLOAT, kept, api.strides_of(kept, layout))
    forward, backward, reserve = ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_size_t()
    status = [
        lib.cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
            handle, mode, 0, x, None, x, scale, None, ctypes.byref(forward)
        ),
        lib.cudnnGetBatchNormalizationBackwardExWorkspaceSize(
            handle, mode, 0, x, None, x, None, x, scale, None, ctypes.byref(backward)
        ),
        lib.cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
            handle, mode, 0, None, x, ctypes.byref(reserve)
        ),
    ]
    for desc in (x, scale):
        lib.cudnnDestroyTensorDescriptor(desc)
    return {
        "dims": dims,
        "layout": layout,
        "dtype": dtype,
        "mode": mode,
        "status": status,
        "forward": forward.value,
        "backward": backward.value,
        "reserve": reserve.value,
    }


def ctc_losses(lib: ctypes.CDLL, handle: ctypes.c_void_p) -> List[Dict[str, Any]]:
    rows = []
    base = {"steps": 50, "batch": 16, "alphabet": 28, "label": 20}
    lines = {
        "steps": [20, 21, 30, 50, 64, 100, 128, 255, 500],
        "batch": [1, 2, 3, 8, 16, 32, 64],
        "alphabet": [2, 10, 28, 29, 33, 64, 100, 256, 1000, 5000],
        "label": [1, 2, 5, 10, 15, 19, 20, 32, 40, 64, 100, 127, 255],
    }
    points = [{**base, name: value} for name, values in lines.items() for value in values]
    points += [
        {"steps": t, "batch": b, "alphabet": a, "label": s}
        for t, b, a, s in (
            (200, 8, 80, 60),
            (300, 4, 5000, 100),
            (128, 64, 28, 30),
            (77, 5, 33, 11),
            (600, 2, 9, 255),
        )
    ]
    for point in points:
        for algo in (0, 1):
            for gradient in (0, 1):
                for ragged in (0, 1):
                    rows.append(_ctc(lib, handle, point, algo, gradient, ragged))
    return rows


def _ctc(
    lib: ctypes.CDLL,
    handle: ctypes.c_void_p,
    point: Dict[str, int],
    algo: int,
    gradient: int,
    ragged: int,
) -> Dict[str, Any]:
    dims = [point["steps"], point["batch"], point["alphabet"]]
    probs = _tensor(lib, api.FLOAT, dims, api.strides_of(dims, "nchw"))
    batch, label = point["batch"], point["label"]
    each = [max(1, label - (index if ragged else 0)) for index in range(batch)]
    label_lengths = (ctypes.c_int * batch)(*each)
    input_lengths = (ctypes.c_int * batch)(*([point["steps"]] * batch))
    total = sum(each)
    labels = (ctypes.c_int * total)(
        *[1 + index % max(1, point["alphabet"] - 1) for index in range(total)]
    )
    old, new = ctypes.c_void_p(), ctypes.c_void_p()
    lib.cudnnCreateCTCLossDescriptor(ctypes.byref(old))
    lib.cudnnCreateCTCLossDescriptor(ctypes.byref(new))
    sizes, status = [], []
    size = ctypes.c_size_t()
    status.append(lib.cudnnSetCTCLossDescriptorEx(old, api.FLOAT, 1, 1))
    status.append(
        lib.cudnnGetCTCLossWorkspaceSize(
            handle,
            probs,
            probs if gradient else None,
            labels,
            label_lengths,
            input_lengths,
            algo,
            old,
            ctypes.byref(size),
        )
    )
    sizes.append(size.value)
    size = ctypes.c_size_t()
    status.append(lib.cudnnSetCTCLossDescriptor_v9(new, api.FLOAT, 1, 0, label))
    status.append(
        lib.cudnnGetCTCLossWorkspaceSize_v8(
            handle, algo, new, probs, probs if gradient else None, ctypes.byref(size)
        )
    )
    sizes.append(size.value)
    lib.cudnnDestroyCTCLossDescriptor(old)
    lib.cudnnDestroyCTCLossDescriptor(new)
    lib.cudnnDestroyTensorDescriptor(probs)
    return {
        **point,
        "algo": algo,
        "gradient": gradient,
        "ragged": ragged,
        "status": status,
        "label_lengths_sum": total,
        "sizes": sizes,
    }
