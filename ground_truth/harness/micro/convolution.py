"""Convolutions, pooling, resampling and recurrent layers: where cuDNN takes part."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from .operation import add


def _last(x: torch.Tensor) -> torch.Tensor:
    return x.to(memory_format=torch.channels_last)


SHAPES = {
    "7x7 stride 2": ((32, 3, 224, 224), (64, 3, 7, 7), {"stride": 2, "padding": 3}),
    "3x3 64": ((32, 64, 56, 56), (64, 64, 3, 3), {"padding": 1}),
    "1x1 256": ((32, 64, 56, 56), (256, 64, 1, 1), {}),
    "3x3 512": ((32, 512, 14, 14), (512, 512, 3, 3), {"padding": 1}),
    "3x3 stride 2": ((32, 128, 56, 56), (256, 128, 3, 3), {"stride": 2, "padding": 1}),
    "3x3 depthwise": ((32, 128, 28, 28), (128, 1, 3, 3), {"padding": 1, "groups": 128}),
    "5x5 depthwise": ((32, 96, 28, 28), (96, 1, 5, 5), {"padding": 2, "groups": 96}),
    "7x7 depthwise": ((16, 96, 56, 56), (96, 1, 7, 7), {"padding": 3, "groups": 96}),
    "3x3 grouped": ((32, 128, 28, 28), (128, 4, 3, 3), {"padding": 1, "groups": 32}),
    "3x3 dilated": ((8, 128, 28, 28), (128, 128, 3, 3), {"padding": 2, "dilation": 2}),
    "16x16 patches": ((16, 3, 224, 224), (768, 3, 16, 16), {"stride": 16}),
}
for name, (x_shape, w_shape, options) in SHAPES.items():
    for precision in ("real", "half", "brain"):
        add(
            f"conv2d {name} {precision}",
            lambda m, p=precision, x=x_shape, w=w_shape: (
                getattr(m, p)(min(x[0], 2) if m.tiny else x[0], *x[1:]),
                getattr(m, p)(*w),
            ),
            lambda x, w, o=options: F.conv2d(x, w, **{**o, "groups": x.shape[1] // w.shape[1]}),
            backward=True,
        )
    add(
        f"conv2d {name} channels_last half",
        lambda m, x=x_shape, w=w_shape: (
            _last(m.half(min(x[0], 2) if m.tiny else x[0], *x[1:])),
            _last(m.half(*w)),
        ),
        lambda x, w, o=options: F.conv2d(x, w, **{**o, "groups": x.shape[1] // w.shape[1]}),
        backward=True,
    )
add(
    "conv1d",
    lambda m: (m.real(16, 64, 4000), m.real(128, 64, 5)),
    lambda x, w: F.conv1d(x, w, padding=2),
    backward=True,
)
add(
    "conv3d",
    lambda m: (m.real(4, 16, 8, 56, 56), m.real(32, 16, 3, 3, 3)),
    lambda x, w: F.conv3d(x, w, padding=1),
    backward=True,
)
add(
    "conv_transpose2d 4x4",
    lambda m: (m.real(16, 64, 28, 28), m.real(64, 32, 4, 4)),
    lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1),
    backward=True,
)
add(
    "conv_transpose2d 2x2",
    lambda m: (m.real(16, 64, 28, 28), m.real(64, 32, 2, 2)),
    lambda x, w: F.conv_transpose2d(x, w, stride=2),
    backward=True,
)
add(
    "conv2d with bias",
    lambda m: (m.real(16, 64, 28, 28), m.real(64, 64, 3, 3), m.real(64)),
    lambda x, w, b: F.conv2d(x, w, b, padding=1),
    backward=True,
)

add(
    "max_pool2d",
    lambda m: (m.real(32, 64, 56, 56),),
    lambda x: F.max_pool2d(x, 3, 2, 1),
    backward=True,
)
add(
    "max_pool2d channels_last",
    lambda m: (_last(m.real(32, 64, 56, 56)),),
    lambda x: F.max_pool2d(x, 3, 2, 1),
    backward=True,
)
add("avg_pool2d", lambda m: (m.real(32, 64, 56, 56),), lambda x: F.avg_pool2d(x, 2), backward=True)
add(
    "adaptive_avg_pool2d 1",
    lambda m: (m.real(32, 64, 56, 56),),
    lambda x: F.adaptive_avg_pool2d(x, 1),
    backward=True,
)
add(
    "adaptive_avg_pool2d 7",
    lambda m: (m.real(32, 64, 56, 56),),
    lambda x: F.adaptive_avg_pool2d(x, 7),
    backward=True,
)
add(
    "adaptive_max_pool2d",
    lambda m: (m.real(32, 64, 56, 56),),
    lambda x: F.adaptive_max_pool2d(x, 7),
    backward=True,
)
add(
    "max_pool3d", lambda m: (m.real(4, 16, 8, 56, 56),), lambda x: F.max_pool3d(x, 2), backward=True
)
for mode in ("nearest", "bilinear", "bicubic"):
    add(
        f"interpolate {mode}",
        lambda m: (m.real(8, 32, 56, 56),),
        lambda x, k=mode: F.interpolate(x, scale_factor=2, mode=k),
        backward=True,
    )
add(
    "grid_sample",
    lambda m: (m.real(8, 16, 56, 56), m.real(8, 56, 56, 2).tanh()),
    lambda x, g: F.grid_sample(x, g, align_corners=False),
    backward=True,
)
add("unfold", lambda m: (m.real(8, 16, 56, 56),), lambda x: F.unfold(x, 3), backward=True)
add(
    "pixel_shuffle",
    lambda m: (m.real(8, 64, 28, 28),),
    lambda x: F.pixel_shuffle(x, 2),
    backward=True,
)
add(
    "pad reflect",
    lambda m: (m.real(8, 16, 56, 56),),
    lambda x: F.pad(x, (2, 2, 2, 2), mode="reflect"),
    backward=True,
)


def _recurrent(kind: Any, **options: Any) -> Any:
    def make(m: Any) -> tuple[torch.nn.Module, torch.Tensor]:
        layer = kind(128, 256, batch_first=True, **options)
        return m.layer(layer), m.real(32, 50, 128)

    return make


def _call(layer: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    padded = torch.nn.functional.pad(x, (0, 128 - x.shape[-1]))
    return layer(padded)[0]


RECURRENT: tuple[tuple[str, Any, dict[str, Any]], ...] = (
    ("lstm", torch.nn.LSTM, {}),
    ("lstm 2 layers dropout", torch.nn.LSTM, {"num_layers": 2, "dropout": 0.1}),
    ("lstm bidirectional", torch.nn.LSTM, {"bidirectional": True}),
    ("lstm projected", torch.nn.LSTM, {"proj_size": 64}),
    ("gru", torch.nn.GRU, {}),
    ("gru 3 layers", torch.nn.GRU, {"num_layers": 3}),
    ("rnn tanh", torch.nn.RNN, {}),
)
for name, kind, options in RECURRENT:
    add(name, _recurrent(kind, **options), _call, backward=True)
