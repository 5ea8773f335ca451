"""Convolutions: which problems to ask about, and what cuDNN answers with and without a card."""

from __future__ import annotations

import ctypes
import random
from typing import Any, Dict, List, Optional, Tuple

import cudnn_api as api

Problem = Dict[str, Any]
# batch, channels, spatial size, filters, kernel, stride, padding, dilation, groups
Shape = Tuple[int, int, Tuple[int, ...], int, Tuple[int, ...], int, Tuple[int, ...], int, int]


def _square(
    n: int,
    c: int,
    size: int,
    k: int,
    r: int,
    stride: int = 1,
    pad: Optional[int] = None,
    dilation: int = 1,
    groups: int = 1,
) -> Shape:
    pad = dilation * (r // 2) if pad is None else pad
    return (n, c, (size, size), k, (r, r), stride, (pad, pad), dilation, groups)


def _networks() -> List[Shape]:
    shapes: List[Shape] = []
    for n in (16, 32):
        # ResNet-18/50
        shapes += [_square(n, 3, 224, 64, 7, 2, 3)]
        shapes += [_square(n, c, s, c, 3) for c, s in ((64, 56), (128, 28), (256, 14), (512, 7))]
        shapes += [_square(n, c, s, 2 * c, 3, 2) for c, s in ((64, 56), (128, 28), (256, 14))]
        shapes += [
            _square(n, c, s, k, 1)
            for c, s, k in (
                (64, 56, 256),
                (256, 56, 64),
                (256, 56, 128),
                (128, 28, 512),
                (512, 28, 128),
                (512, 28, 256),
                (256, 14, 1024),
                (1024, 14, 256),
                (512, 7, 2048),
                (2048, 7, 512),
            )
        ]
        shapes += [
            _square(n, c, s, k, 1, 2)
            for c, s, k in ((64, 56, 128), (256, 56, 512), (512, 28, 1024), (1024, 14, 2048))
        ]
        shapes += [_square(n, c, s, c, 3, 2) for c, s in ((128, 56), (256, 28), (512, 14))]
    for n in (8, 32):
        # VGG-16
        shapes += [
            _square(n, c, s, k, 3)
            for c, s, k in (
                (3, 224, 64),
                (64, 224, 64),
                (64, 112, 128),
                (128, 112, 128),
                (128, 56, 256),
                (256, 56, 256),
                (256, 28, 512),
                (512, 28, 512),
                (512, 14, 512),
            )
        ]
    # U-Net, with the up-sampling as transposed convolution (2x2, stride 2)
    shapes += [
        _square(4, c, s, k, 3)
        for c, s, k in (
            (3, 256, 64),
            (64, 256, 64),
            (128, 256, 64),
            (256, 128, 128),
            (512, 64, 256),
            (1024, 32, 512),
            (1024, 16, 1024),
        )
    ]
    shapes += [_square(4, c, s, 2 * c, 2, 2, 0) for c, s in ((64, 256), (128, 128), (512, 32))]
    shapes += [_square(4, 64, 256, 2, 1)]
    # DenseNet-121
    shapes += [
        _square(16, c, s, 128, 1)
        for c, s in (
            (96, 56),
            (224, 56),
            (256, 28),
            (480, 28),
            (640, 14),
            (992, 14),
            (512, 7),
            (1024, 7),
        )
    ]
    shapes += [_square(16, 128, s, 32, 3) for s in (56, 28, 14, 7)]
    # MobileNet-V2, EfficientNet-B0, ConvNeXt: depthwise and pointwise
    shapes += [
        _square(32, c, s, c, r, t, None, 1, c)
        for c, s, r, t in (
            (32, 112, 3, 1),
            (96, 112, 3, 2),
            (144, 56, 3, 1),
            (144, 56, 5, 2),
            (240, 28, 5, 1),
            (384, 14, 3, 1),
            (480, 14, 5, 1),
            (672, 14, 5, 2),
            (960, 7, 3, 1),
            (1152, 7, 5, 1),
            (96, 56, 7, 1),
            (192, 28, 7, 1),
            (384, 14, 7, 1),
            (768, 7, 7, 1),
        )
    ]
    shapes += [
        _square(32, c, s, k, 1)
        for c, s, k in (
            (32, 112, 16),
            (16, 112, 96),
            (96, 56, 24),
            (144, 28, 32),
            (384, 14, 96),
            (320, 7, 1280),
            (40, 28, 240),
            (1152, 1, 48),
            (48, 1, 1152),
        )
    ]
    shapes += [
        _square(32, 3, 224, 96, 4, 4, 0),
        _square(32, 96, 56, 192, 2, 2, 0),
        _square(16, 3, 224, 768, 16, 16, 0),
        _square(32, 3, 224, 32, 3, 2),
    ]
    # grouped, dilated, odd
    shapes += [
        _square(16, 128, 56, 128, 3, 1, None, 1, 32),
        _square(16, 256, 28, 256, 3, 2, None, 1, 32),
        _square(8, 512, 28, 512, 3, 1, None, 2),
        _square(8, 2048, 28, 256, 3, 1, None, 12),
        _square(8, 64, 33, 96, 5),
        _square(8, 31, 45, 17, 3),
        _square(1, 256, 64, 256, 3),
        _square(3, 100, 30, 50, 1),
        _square(2, 320, 64, 320, 3),
        _square(2, 640, 32, 640, 3),
        _square(2, 1280, 16, 1280, 3),
        _square(64, 64, 56, 64, 3),
        _square(128, 1, 28, 32, 3, 1, 1),
        _square(128, 32, 28, 64, 3, 1, 0),
        _square(128, 3, 32, 6, 5, 1, 0),
        _square(256, 64, 8, 128, 3),
    ]
    # one-dimensional (a height of one, as PyTorch passes it) and three-dimensional
    for n, c, length, k, r, t in (
        (16, 80, 3000, 384, 3, 1),
        (16, 384, 3000, 384, 3, 2),
        (8, 512, 1000, 512, 10, 5),
        (32, 64, 512, 128, 7, 1),
    ):
        shapes.append((n, c, (1, length), k, (1, r), t, (0, r // 2), 1, 1))
    for n, c, d, s, k, r, t in (
        (4, 3, 16, 112, 64, 3, 1),
        (4, 64, 16, 56, 64, 3, 1),
        (4, 64, 8, 28, 128, 3, 2),
        (2, 32, 32, 32, 32, 3, 1),
        (2, 16, 64, 64, 32, 3, 1),
        (4, 128, 8, 14, 256, 1, 1),
    ):
        shapes.append((n, c, (d, s, s), k, (r, r, r), t, (r // 2,) * 3, 1, 1))
    return list(dict.fromkeys(shapes))


def _random(count: int) -> List[Shape]:
    """Shapes without a network: they spread tiles, reduction lengths and remainders evenly."""
    source = random.Random(20)
    shapes: List[Shape] = []
    while len(shapes) < count:
        n = source.choice((1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64))
        c = source.choice((16, 32, 48, 64, 96, 128, 192, 256, 320, 384, 512, 768, 1024))
        k = source.choice((16, 32, 64, 80, 96, 128, 192, 256, 384, 512, 640, 1024))
        size = source.choice((7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112))
        r = source.choice((1, 1, 3, 3, 3, 5))
        stride = source.choice((1, 1, 1, 2))
        if n * max(c, k) * size * size < 2**27:
            shapes.append(_square(n, c, size, k, r, stride))
    return shapes


def problems() -> List[Problem]:
    result: List[Problem] = []

    def add(shape: Shape, direction: str, dtype: int, layout: str) -> None:
        n, c, size, k, kernel, stride, pad, dilation, groups = shape
        result.append(
            {
                "direction": direction,
                "dtype": dtype,
                "layout": layout,
                "n": n,
                "c": c,
                "size": list(size),
                "k": k,
                "kernel": list(kernel),
                "stride": stride,
                "pad": list(pad),
                "dilation": dilation,
                "groups": groups,
            }
        )

    directions = ("forward", "data", "filter")
    networks, others = _networks(), _random(120)
    for shape in networks + others:
        for direction in directions:
            add(shape, direction, api.FLOAT, "nchw")
    half = (
        (api.HALF, "nhwc"),
        (api.HALF, "nchw"),
        (api.BFLOAT16, "nhwc"),
        (api.FLOAT, "nhwc"),
        (api.BFLOAT16, "nchw"),
    )
    for index, shape in enumerate(networks + others[:40]):
        for position, (dtype, layout) in enumerate(half):
            if position < 2 or (index + position) % 3 == 0:
                for direction in directions:
                    add(shape, direction, dtype, layout)
    return result


def output_size(problem: Problem) -> List[int]:
    return [
        (s + 2 * p - problem["dilation"] * (r - 1) - 1) // problem["stride"] + 1
        for s, p, r in zip(problem["size"], problem["pad"], problem["kernel"])
    ]


def _tensor(backend: api.Backend, uid: int, dims: List[int], problem: Problem) -> ctypes.c_void_p:
    desc = backend.create(api.DESC_TENSOR)
    backend.set_enum(desc, 901, api.TYPE_DATA_TYPE, problem["dtype"])
    backend.set_ints(desc, 902, dims)
    backend.set_ints(desc, 903, api.strides_of(dims, problem["layout"]))
    backend.set_ints(desc, 906, [uid])
    backend.set_ints(desc, 900, [32])
    status = backend.finalize(desc)
    if status:
        raise api.CudnnError("tensor", status)
    return desc


def _graph(
    backend: api.Backend, problem: Problem, with_handle: bool, made: List[ctypes.c_void_p]
) -> ctypes.c_void_p:
    spatial = len(problem["size"])
    x = _tensor(backend, ord("x"), [problem["n"], problem["c"], *problem["size"]], problem)
    y = _tensor(backend, ord("y"), [problem["n"], problem["k"], *output_size(problem)], problem)
    w = _tensor(
        backend,
        ord("w"),
        [problem["k"], problem["c"] // problem["groups"], *problem["kernel"]],
        problem,
    )
    conv = backend.create(api.DESC_CONVOLUTION)
    made += [x, y, w, conv]
    backend.set_enum(conv, 100, api.TYPE_DATA_TYPE, api.FLOAT)
    backend.set_enum(conv, 101, api.TYPE_CONVOLUTION_MODE, 1)
    backend.set_ints(conv, 106, [spatial])
    backend.set_ints(conv, 102, [problem["dilation"]] * spatial)
    backend.set_ints(conv, 103, [problem["stride"]] * spatial)
    backend.set_ints(conv, 105, problem["pad"])
    backend.set_ints(conv, 104, problem["pad"])
    if backend.finalize(conv):
        raise api.CudnnError("convolution", 1)
    kind, base = {
        "forward": (api.DESC_CONV_FORWARD, 700),
        "data": (api.DESC_CONV_DATA, 706),
        "filter": (api.DESC_CONV_FILTER, 712),
    }[problem["direction"]]
    operation = backend.create(kind)
    made.append(operation)
    backend.set_float(operation, base, 1.0)
    backend.set_float(operation, base + 1, 0.0)
    backend.set_descs(operation, base + 2, [conv])
    for offset, tensor in zip(
        (3, 4, 5),
        {"forward": (w, x, y), "data": (w, x, y), "filter": (w, x, y)}[problem["direction"]],
    ):
        backend.set_descs(operation, base + offset, [tensor])
    status = backend.finalize(operation)
    if status:
        raise api.CudnnError("operation", status)
    graph = backend.create(api.DESC_GRAPH)
    made.append(graph)
    if with_handle:
        backend.set_handle(graph, 800)
    backend.set_descs(graph, 801, [operation])
    status = backend.finalize(graph)
    if status:
        raise api.CudnnError("operation graph", status)
    return graph


def ask(
    backend: api.Backend,
    problem: Problem,
    device: Optional[ctypes.c_void_p],
    configs: int,
    mode: int = 0,
    plan_uses_handle: bool = False,
    sm_target: Optional[int] = None,
    keep_plan_text: bool = False,
) -> Dict[str, Any]:
    """Heuristics, then one plan per configuration.

    With `device` no handle is used anywhere unless `plan_uses_handle`; without it, the handle is.
    """
    made: List[ctypes.c_void_p] = []
    answer: Dict[str, Any] = {"configs": []}
    try:
        graph = _graph(backend, problem, device is None or plan_uses_handle, made)
        heur = backend.create(api.DESC_HEUR)
        made.append(heur)
        backend.set_descs(heur, 201, [graph])
        backend.set_enum(heur, 200, api.TYPE_HEUR_MODE, mode)
        if device is not None:
            backend.set_descs(heur, 204, [device])
        if sm_target is not None:
            backend.set_int32(heur, 203, sm_target)
        answer["heur_status"] = backend.finalize(heur)
        if answer["heur_status"]:
            return answer
        filled, all_configs = backend.get_descs(heur, 202, api.DESC_ENGINECFG, 40)
        made += all_configs
        answer["count"] = len(filled)
        for config in filled[:configs]:
            answer["configs"].append(
                _plan(backend, config, device, plan_uses_handle, made, keep_plan_text)
            )
    except api.CudnnError as error:
        answer["error"] = str(error)
    finally:
        backend.destroy(reversed(made))
    return answer


def _plan(
    backend: api.Backend,
    config: ctypes.c_void_p,
    device: Optional[ctypes.c_void_p],
    with_handle: bool,
    made: List[ctypes.c_void_p],
    keep_text: bool,
) -> Dict[str, Any]:
    row: Dict[str, Any] = {}
    engines, all_engines = backend.get_descs(config, 300, api.DESC_ENGINE, 1)
    made += all_engines
    if engines:
        row["engine"] = backend.get_int(engines[0], 1301)
        row["numerical"] = backend.get_enums(engines[0], 1303, api.TYPE_NUMERICAL_NOTE, 10)
        row["behavior"] = backend.get_enums(engines[0], 1305, api.TYPE_BEHAVIOR_NOTE, 5)
    knobs, all_knobs = backend.get_descs(config, 302, api.DESC_KNOB_CHOICE, 44)
    made += all_knobs
    row["knobs"] = [
        [*backend.get_enums(knob, 600, api.TYPE_KNOB, 1), backend.get_int(knob, 601)]
        for knob in knobs
    ]
    plan = backend.create(api.DESC_PLAN)
    made.append(plan)
    backend.set_descs(plan, 401, [config])
    if device is None or with_handle:
        backend.set_handle(plan, 400)
    if device is not None:
        backend.set_descs(plan, 407, [device])
    row["status"] = backend.finalize(plan)
    if not row["status"]:
        row["workspace"] = backend.get_int(plan, 402)
        if keep_text:
            row["plan_text"] = backend.get_text(plan, 405)
    return row
