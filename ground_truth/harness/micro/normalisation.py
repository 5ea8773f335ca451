"""Norms, softmaxes, dropout, activations and plain reductions, forward and backward."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .operation import add

for rows, width in ((64, 64), (4096, 768), (4096, 1024), (32768, 768), (512, 5120), (100_000, 32)):
    add(
        f"layer_norm {rows}x{width}",
        lambda m, r=rows, w=width: (m.real(r, w), m.real(w), m.real(w)),
        lambda x, w, b: F.layer_norm(x, w.shape, w, b),
        backward=True,
    )
add(
    "layer_norm bf16",
    lambda m: (m.brain(4096, 768), m.brain(768), m.brain(768)),
    lambda x, w, b: F.layer_norm(x, w.shape, w, b),
    backward=True,
)
add(
    "rms_norm",
    lambda m: (m.real(4096, 1024), m.real(1024)),
    lambda x, w: F.rms_norm(x, w.shape, w),
    backward=True,
)
add(
    "rms_norm bf16",
    lambda m: (m.brain(4096, 1024), m.brain(1024)),
    lambda x, w: F.rms_norm(x, w.shape, w),
    backward=True,
)


def _batch_norm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.batch_norm(x, torch.zeros_like(w), torch.ones_like(w), w, b, training=True)


for name, shape in (
    ("32x64x56x56", (32, 64, 56, 56)),
    ("128x512x7x7", (128, 512, 7, 7)),
    ("256x128", (256, 128)),
    ("16x32x8x28x28", (16, 32, 8, 28, 28)),
):
    add(
        f"batch_norm {name}",
        lambda m, s=shape: (m.real(*s), m.real(s[1]), m.real(s[1])),
        _batch_norm,
        backward=True,
    )


def _last(x: torch.Tensor) -> torch.Tensor:
    return x.to(memory_format=torch.channels_last)


for precision in ("real", "half", "brain"):
    add(
        f"batch_norm channels_last {precision}",
        lambda m, p=precision: (_last(getattr(m, p)(32, 64, 56, 56)), m.real(64), m.real(64)),
        _batch_norm,
        backward=True,
    )
    add(
        f"batch_norm half input {precision}",
        lambda m, p=precision: (getattr(m, p)(32, 64, 28, 28), m.real(64), m.real(64)),
        _batch_norm,
        backward=True,
    )
add(
    "batch_norm evaluation",
    lambda m: (m.real(32, 64, 56, 56), m.real(64), m.real(64)),
    lambda x, w, b: F.batch_norm(x, w, b.abs(), w, b, training=False),
)
add(
    "group_norm",
    lambda m: (m.real(16, 64, 56, 56), m.real(64), m.real(64)),
    lambda x, w, b: F.group_norm(x, 8, w, b),
    backward=True,
)
add(
    "group_norm channels_last",
    lambda m: (_last(m.real(16, 64, 56, 56)), m.real(64), m.real(64)),
    lambda x, w, b: F.group_norm(x, 8, w, b),
    backward=True,
)
add("instance_norm", lambda m: (m.real(16, 64, 56, 56),), F.instance_norm, backward=True)
add(
    "local_response_norm",
    lambda m: (m.real(8, 32, 28, 28),),
    lambda x: F.local_response_norm(x, 5),
    backward=True,
)

add("softmax 4096x1000", lambda m: (m.real(4096, 1000),), lambda x: x.softmax(-1), backward=True)
add("softmax 64x50257", lambda m: (m.real(64, 50257),), lambda x: x.softmax(-1), backward=True)
add("softmax spatial", lambda m: (m.real(8, 21, 128, 128),), lambda x: x.softmax(1), backward=True)
add(
    "softmax bf16 to fp32",
    lambda m: (m.brain(1024, 1024),),
    lambda x: x.softmax(-1, dtype=torch.float32),
    backward=True,
)
add("log_softmax", lambda m: (m.real(4096, 1000),), lambda x: x.log_softmax(-1), backward=True)
add("logsumexp", lambda m: (m.real(4096, 1000),), lambda x: x.logsumexp(-1), backward=True)
add("dropout", lambda m: (m.real(4096, 768),), lambda x: F.dropout(x, 0.1), backward=True)
add("dropout2d", lambda m: (m.real(32, 64, 28, 28),), lambda x: F.dropout2d(x, 0.1), backward=True)
add(
    "alpha_dropout",
    lambda m: (m.real(4096, 768),),
    lambda x: F.alpha_dropout(x, 0.1, training=True),
    backward=True,
)
for activation in (
    "relu",
    "gelu",
    "silu",
    "hardswish",
    "leaky_relu",
    "elu",
    "mish",
    "softplus",
    "tanh",
    "sigmoid",
):
    add(f"{activation}", lambda m: (m.real(4096, 768),), getattr(F, activation), backward=True)
add("prelu", lambda m: (m.real(32, 64, 28, 28), m.real(64)), F.prelu, backward=True)
add("glu", lambda m: (m.real(4096, 1024),), F.glu, backward=True)
add("sum all", lambda m: (m.real(10_000_000),), torch.sum, backward=True)
add("sum all bf16", lambda m: (m.brain(10_000_000),), torch.sum, backward=True)
add("sum rows", lambda m: (m.real(100, 100_000),), lambda x: x.sum(1), backward=True)
add("sum columns", lambda m: (m.real(100_000, 100),), lambda x: x.sum(0), backward=True)
add("sum few columns of many", lambda m: (m.real(1_000_000, 8),), lambda x: x.sum(0))
add(
    "mean and var", lambda m: (m.real(1000, 10_000),), lambda x: x.mean(1) + x.var(1), backward=True
)
add("std all", lambda m: (m.real(3_000_000),), torch.std, backward=True)
add("norm all", lambda m: (m.real(3_000_000),), torch.linalg.vector_norm, backward=True)
add("max with index", lambda m: (m.real(1000, 1000),), lambda x: x.max(1)[0], backward=True)
add("argmax all", lambda m: (m.real(5_000_000),), torch.argmax)
add("prod rows", lambda m: (m.real(100, 1000),), lambda x: x.prod(1), backward=True)
add("any and all", lambda m: (m.mask(5_000_000),), lambda x: x.any() | x.all())
add("isfinite all", lambda m: (m.real(5_000_000),), lambda x: x.isfinite().all())
add(
    "foreach norm",
    lambda m: ([m.real(100_000) for _ in range(40)],),
    lambda xs: torch._foreach_norm(xs),
)
add(
    "clip_grad_norm",
    lambda m: ([m.real(100_000) for _ in range(40)],),
    lambda xs: torch.nn.utils.get_total_norm(xs),
)
