"""Scaled dot-product attention through every backend, and the fused module around it."""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from .operation import Inputs, add

BACKENDS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "math": SDPBackend.MATH,
}


def _heads(
    length: int, width: int, precision: str, batch: int = 4
) -> Callable[[Inputs], tuple[Any, ...]]:
    def make(m: Inputs) -> tuple[Any, ...]:
        return tuple(getattr(m, precision)(batch, 8, length, width) for _ in range(3))

    return make


def _through(name: str, **options: Any) -> Callable[..., torch.Tensor]:
    def call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        backend = BACKENDS[name] if q.is_cuda else SDPBackend.MATH
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(q, k, v, **options)

    return call


for backend in BACKENDS:
    for precision in ("real", "half", "brain"):
        if precision == "real" and backend in ("flash", "cudnn"):
            continue
        add(
            f"sdpa {backend} {precision}",
            _heads(512, 64, precision),
            _through(backend),
            backward=True,
        )
        add(
            f"sdpa {backend} {precision} causal",
            _heads(512, 64, precision),
            _through(backend, is_causal=True),
            backward=True,
        )
    add(
        f"sdpa {backend} dropout",
        _heads(256, 64, "brain"),
        _through(backend, dropout_p=0.1),
        backward=True,
    )
    add(f"sdpa {backend} width 80", _heads(256, 80, "half"), _through(backend), backward=True)
    add(
        f"sdpa {backend} width 128 length 1000",
        _heads(1000, 128, "brain"),
        _through(backend),
        backward=True,
    )

for precision in ("real", "half", "brain"):
    for width in (32, 40, 64, 72, 128, 256):
        add(
            f"sdpa chosen {precision} width {width}",
            _heads(384, width, precision),
            F.scaled_dot_product_attention,
            backward=True,
        )
    add(
        f"sdpa chosen {precision} causal odd length",
        _heads(333, 64, precision),
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        backward=True,
    )
    add(
        f"sdpa chosen {precision} boolean mask",
        lambda m, p=precision: (*_heads(256, 64, p)(m), m.mask(4, 1, 256, 256)),
        lambda q, k, v, mask: F.scaled_dot_product_attention(q, k, v, attn_mask=mask),
        backward=True,
    )
    add(
        f"sdpa chosen {precision} additive mask",
        lambda m, p=precision: (*_heads(256, 64, p)(m), getattr(m, p)(4, 1, 256, 256).detach()),
        lambda q, k, v, mask: F.scaled_dot_product_attention(q, k, v, attn_mask=mask.detach()),
        backward=True,
    )
    add(
        f"sdpa chosen {precision} without gradient",
        _heads(2048, 64, precision, batch=1),
        F.scaled_dot_product_attention,
    )
add(
    "sdpa grouped queries",
    lambda m: (m.brain(4, 16, 256, 64), m.brain(4, 4, 256, 64), m.brain(4, 4, 256, 64)),
    lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True),
    backward=True,
)
add(
    "multi-head attention module",
    lambda m: (
        m.layer(torch.nn.MultiheadAttention(256, 8, batch_first=True)),
        m.real(16, 128, 256),
    ),
    lambda layer, x: layer(
        F.pad(x, (0, 256 - x.shape[-1])), *[F.pad(x, (0, 256 - x.shape[-1]))] * 2
    )[0],
    backward=True,
)
add(
    "transformer encoder layer",
    lambda m: (
        m.layer(torch.nn.TransformerEncoderLayer(256, 8, batch_first=True)),
        m.real(16, 128, 256),
    ),
    lambda layer, x: layer(F.pad(x, (0, 256 - x.shape[-1]))),
    backward=True,
)
