"""Recurrent networks: weights, workspace, reserve and weight offsets over a wide grid."""

from __future__ import annotations

import ctypes
import random
from typing import Any, Dict, List

import cudnn_api as api

Point = Dict[str, Any]
RELU, TANH, LSTM, GRU = 0, 1, 2, 3
STANDARD, PERSIST_STATIC, PERSIST_SMALL_H = 0, 1, 3
GATES = {RELU: 2, TANH: 2, LSTM: 8, GRU: 6}
BASE: Point = {
    "mode": LSTM,
    "algo": STANDARD,
    "bidirectional": 0,
    "dtype": api.FLOAT,
    "math": 0,
    "input": 256,
    "hidden": 512,
    "projection": 512,
    "layers": 2,
    "dropout": 0.0,
    "packed": 0,
    "seq": 32,
    "batch": 16,
    "lengths": "full",
}


def torch_algorithm(point: Point, forward: bool) -> int:
    """The algorithm PyTorch asks for on a card of capability 9.0 with 132 multiprocessors."""
    if point["projection"] != point["hidden"] or point["packed"]:
        return STANDARD
    simple = point["mode"] in (RELU, TANH)
    limit = (384 if simple else 192) if forward else (256 if simple else 128)
    if point["dtype"] != api.DOUBLE and point["hidden"] <= limit:
        return PERSIST_SMALL_H
    fits = (
        point["layers"] == 1
        and point["hidden"] <= 1024
        and not point["bidirectional"]
        and point["hidden"] % 128 == 0
        and point["input"] % 128 == 0
    )
    if point["dtype"] == api.HALF and fits and point["mode"] != GRU:
        batch = point["batch"]
        if (
            batch % 8 == 0
            and batch <= 128
            and (point["mode"] == LSTM or batch < 96 or point["hidden"] < 896)
        ):
            return PERSIST_STATIC
    return STANDARD


def points() -> List[Point]:
    lines: Dict[str, List[Any]] = {
        "hidden": [
            1,
            3,
            8,
            16,
            20,
            31,
            32,
            33,
            64,
            100,
            128,
            192,
            200,
            256,
            257,
            300,
            384,
            500,
            640,
            768,
            1000,
            1024,
            1500,
            2048,
            4096,
        ],
        "input": [1, 3, 8, 16, 31, 33, 64, 100, 128, 300, 512, 768, 1000, 1024, 2048],
        "batch": [1, 2, 3, 4, 7, 8, 12, 16, 20, 32, 33, 48, 64, 80, 96, 100, 128, 200, 256, 512],
        "seq": [1, 2, 3, 4, 5, 7, 8, 10, 16, 17, 20, 33, 35, 50, 64, 100, 128, 200, 256, 512, 1000],
        "layers": [1, 2, 3, 4, 5, 6],
        "dropout": [0.0, 0.1, 0.5],
        "bidirectional": [0, 1],
        "packed": [0, 1],
    }
    result: List[Point] = []

    def add(point: Point) -> None:
        point = dict(point)
        if point["dtype"] == api.FLOAT:
            maths = [3, 0]
        elif point["dtype"] == api.HALF:
            maths = [1]
        else:
            maths = [0]
        for math in maths:
            algorithms = {torch_algorithm(point, True), torch_algorithm(point, False), STANDARD}
            for algo in sorted(algorithms):
                result.append({**point, "math": math, "algo": algo})

    for mode in (LSTM, GRU, TANH, RELU):
        for dtype in (api.FLOAT, api.HALF, api.BFLOAT16):
            for bidirectional in (0, 1):
                base = {**BASE, "mode": mode, "dtype": dtype, "bidirectional": bidirectional}
                for name, values in lines.items():
                    dense = dtype == api.FLOAT or name in ("hidden", "batch", "layers")
                    for value in values if dense else values[::3]:
                        point = {**base, name: value}
                        if name == "hidden":
                            point["projection"] = value
                        add(point)
    source = random.Random(7)
    for _ in range(900):
        hidden = source.choice(lines["hidden"])
        point = {
            "mode": source.choice((LSTM, LSTM, GRU, TANH, RELU)),
            "bidirectional": source.choice((0, 1)),
            "dtype": source.choice((api.FLOAT, api.FLOAT, api.HALF, api.BFLOAT16)),
            "input": source.choice(lines["input"]),
            "hidden": hidden,
            "projection": hidden,
            "layers": source.choice((1, 1, 2, 3, 4)),
            "dropout": source.choice((0.0, 0.2)),
            "packed": source.choice((0, 0, 1)),
            "seq": source.choice(lines["seq"]),
            "batch": source.choice(lines["batch"]),
            "lengths": source.choice(("full", "falling", "steep")),
        }
        if point["mode"] == LSTM and source.random() < 0.15 and hidden >= 16:
            point["projection"] = hidden // 2
        if not point["packed"]:
            point["lengths"] = "full"
        add(point)
    for dtype in (api.DOUBLE,):
        for mode in (LSTM, GRU, TANH):
            add({**BASE, "mode": mode, "dtype": dtype})
            add({**BASE, "mode": mode, "dtype": dtype, "layers": 1, "hidden": 96, "projection": 96})
    return result


def lengths(point: Point) -> List[int]:
    batch, longest = point["batch"], point["seq"]
    if point["lengths"] == "falling":
        return [max(1, longest - (longest * index) // (2 * batch)) for index in range(batch)]
    if point["lengths"] == "steep":
        return [max(1, longest // (index + 1)) for index in range(batch)]
    return [longest] * batch


class Recurrent:
    """Holds the descriptors that are reused from point to point."""

    def __init__(
        self, lib: ctypes.CDLL, handle: ctypes.c_void_p, states: int, states_bytes: int
    ) -> None:
        self.lib, self.handle = lib, handle
        self.states, self.states_bytes = ctypes.c_void_p(states), ctypes.c_size_t(states_bytes)

    def _check(self, what: str, status: int) -> None:
        if status:
            raise api.CudnnError(what, status)

    def ask(self, point: Point, with_offsets: bool) -> Dict[str, Any]:
        lib = self.lib
        rnn, data, dropout = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        answer: Dict[str, Any] = {}
        self._check("rnn", lib.cudnnCreateRNNDescriptor(ctypes.byref(rnn)))
        self._check("data", lib.cudnnCreateRNNDataDescriptor(ctypes.byref(data)))
        self._check("dropout", lib.cudnnCreateDropoutDescriptor(ctypes.byref(dropout)))
        try:
            if point["dropout"]:
                self._check(
                    "dropout set",
                    lib.cudnnRestoreDropoutDescriptor(
                        dropout,
                        self.handle,
                        ctypes.c_float(point["dropout"]),
                        self.states,
                        self.states_bytes,
                        ctypes.c_ulonglong(1),
                    ),
                )
            else:
                self._check(
                    "dropout set",
                    lib.cudnnSetDropoutDescriptor(
                        dropout,
                        self.handle,
                        ctypes.c_float(0),
                        None,
                        ctypes.c_size_t(0),
                        ctypes.c_ulonglong(0),
                    ),
                )
            precision = api.DOUBLE if point["dtype"] == api.DOUBLE else api.FLOAT
            self._check(
                "rnn set",
                lib.cudnnSetRNNDescriptor_v8(
                    rnn,
                    point["algo"],
                    point["mode"],
                    2,
                    point["bidirectional"],
                    0,
                    point["dtype"],
                    precision,
                    point["math"],
                    point["input"],
                    point["hidden"],
                    point["projection"],
                    point["layers"],
                    dropout,
                    ctypes.c_uint32(0 if point["packed"] else 1),
                ),
            )
            array = (ctypes.c_int * point["batch"])(*lengths(point))
            self._check(
                "data set",
                lib.cudnnSetRNNDataDescriptor(
                    data,
                    point["dtype"],
                    1 if point["packed"] else 0,
                    point["seq"],
                    point["batch"],
                    point["input"],
                    array,
                    None,
                ),
            )
            weight = ctypes.c_size_t()
            answer["weight_status"] = lib.cudnnGetRNNWeightSpaceSize(
                self.handle, rnn, ctypes.byref(weight)
            )
            answer["weight"] = weight.value
            for name, mode in (("inference", 0), ("training", 1)):
                work, reserve = ctypes.c_size_t(), ctypes.c_size_t()
                status = lib.cudnnGetRNNTempSpaceSizes(
                    self.handle, rnn, mode, data, ctypes.byref(work), ctypes.byref(reserve)
                )
                answer[name] = [status, work.value, reserve.value]
            if with_offsets:
                answer["offsets"] = self._offsets(rnn, point, weight.value)
        except api.CudnnError as error:
            answer["error"] = str(error)
        finally:
            lib.cudnnDestroyRNNDescriptor(rnn)
            lib.cudnnDestroyRNNDataDescriptor(data)
            lib.cudnnDestroyDropoutDescriptor(dropout)
        return answer

    def _offsets(self, rnn: ctypes.c_void_p, point: Point, weight_bytes: int) -> List[Any]:
        lib, rows = self.lib, []
        matrix, bias = ctypes.c_void_p(), ctypes.c_void_p()
        lib.cudnnCreateTensorDescriptor(ctypes.byref(matrix))
        lib.cudnnCreateTensorDescriptor(ctypes.byref(bias))
        base = 0x7F0000000000
        ids = GATES[point["mode"]] + (1 if point["projection"] != point["hidden"] else 0)
        for layer in range(point["layers"] * (1 + point["bidirectional"])):
            for gate in range(ids):
                m_at, b_at = ctypes.c_void_p(), ctypes.c_void_p()
                status = lib.cudnnGetRNNWeightParams(
                    self.handle,
                    rnn,
                    layer,
                    ctypes.c_size_t(weight_bytes),
                    ctypes.c_void_p(base),
                    gate,
                    matrix,
                    ctypes.byref(m_at),
                    bias,
                    ctypes.byref(b_at),
                )
                rows.append(
                    [
                        layer,
                        gate,
                        status,
                        (m_at.value or base - 1) - base,
                        self._tensor(matrix),
                        (b_at.value or base - 1) - base,
                        self._tensor(bias),
                    ]
                )
        lib.cudnnDestroyTensorDescriptor(matrix)
        lib.cudnnDestroyTensorDescriptor(bias)
        return rows

    def _tensor(self, desc: ctypes.c_void_p) -> List[Any]:
        dims, strides = (ctypes.c_int * 8)(), (ctypes.c_int * 8)()
        kind, count = ctypes.c_int(), ctypes.c_int()
        status = self.lib.cudnnGetTensorNdDescriptor(
            desc, 8, ctypes.byref(kind), ctypes.byref(count), dims, strides
        )
        return [status, kind.value, list(dims[: count.value]), list(strides[: count.value])]
