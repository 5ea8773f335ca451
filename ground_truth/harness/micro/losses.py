"""Losses, conversions and optimizer steps."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from .operation import add

add(
    "cross_entropy 256x1000",
    lambda m: (m.real(256, 1000), m.whole(1000, 256)),
    F.cross_entropy,
    backward=True,
)
add(
    "cross_entropy 4096x30522",
    lambda m: (m.real(4096, 30522), m.whole(30522, 4096)),
    F.cross_entropy,
    backward=True,
)
add(
    "cross_entropy bf16",
    lambda m: (m.brain(4096, 30522), m.whole(30522, 4096)),
    F.cross_entropy,
    backward=True,
)
add(
    "cross_entropy label smoothing",
    lambda m: (m.real(256, 1000), m.whole(1000, 256)),
    lambda x, y: F.cross_entropy(x, y, label_smoothing=0.1),
    backward=True,
)
add(
    "cross_entropy spatial",
    lambda m: (m.real(8, 21, 64, 64), m.whole(21, 8, 64, 64)),
    F.cross_entropy,
    backward=True,
)
add(
    "nll_loss",
    lambda m: (m.real(256, 1000).log_softmax(-1), m.whole(1000, 256)),
    F.nll_loss,
    backward=True,
)
add("mse_loss", lambda m: (m.real(1000, 1000), m.real(1000, 1000)), F.mse_loss, backward=True)
add("l1_loss", lambda m: (m.real(1000, 1000), m.real(1000, 1000)), F.l1_loss, backward=True)
add(
    "smooth_l1_loss",
    lambda m: (m.real(1000, 1000), m.real(1000, 1000)),
    F.smooth_l1_loss,
    backward=True,
)
add(
    "bce_with_logits",
    lambda m: (m.real(1000, 1000), m.real(1000, 1000).sigmoid()),
    F.binary_cross_entropy_with_logits,
    backward=True,
)
add(
    "kl_div",
    lambda m: (m.real(256, 1000).log_softmax(-1), m.real(256, 1000).softmax(-1)),
    F.kl_div,
    backward=True,
)
add(
    "triplet_margin_loss",
    lambda m: (m.real(256, 128), m.real(256, 128), m.real(256, 128)),
    F.triplet_margin_loss,
    backward=True,
)


def _ctc(m: Any, kind: torch.dtype, lengths_place: str) -> tuple[Any, ...]:
    """cuDNN's own CTC wants 32-bit targets and lengths on the host."""
    steps, batch, symbols, target = 50, 8, 20, 10
    return (
        m.real(steps, batch, symbols).log_softmax(-1),
        (m.whole(symbols - 1, batch, target) + 1).to(kind),
        torch.full((batch,), steps, dtype=kind, device=lengths_place),
        torch.full((batch,), target, dtype=kind, device=lengths_place),
    )


add("ctc_loss native", lambda m: _ctc(m, torch.long, m.device), F.ctc_loss, backward=True)
add(
    "ctc_loss cudnn",
    lambda m: _ctc(m, torch.int32, "cpu"),
    lambda x, y, n, k: F.ctc_loss(x, y.flatten(), n, k),
    backward=True,
)

add(
    "to bf16 and back",
    lambda m: (m.real(1000, 1000),),
    lambda x: x.bfloat16().float(),
    backward=True,
)
add(
    "contiguous of a transpose",
    lambda m: (m.real(1000, 1000),),
    lambda x: x.t().contiguous(),
    backward=True,
)
add(
    "channels_last conversion",
    lambda m: (m.real(16, 64, 56, 56),),
    lambda x: x.contiguous(memory_format=torch.channels_last),
    backward=True,
)
add(
    "complex multiply",
    lambda m: (m.real(512, 512),),
    lambda x: torch.view_as_real(torch.complex(x, x) * 2),
    backward=True,
)
add(
    "non-finite check of GradScaler",
    lambda m: (
        [m.real(1000) for _ in range(8)],
        torch.zeros(1, device=m.device),
        torch.ones(1, device=m.device),
    ),
    torch._amp_foreach_non_finite_check_and_unscale_,
)


def _optimizer_step(kind: Any, **options: Any) -> Any:
    def call(*parameters: torch.Tensor) -> None:
        leaves = [p.detach().requires_grad_() for p in parameters]
        for leaf in leaves:
            leaf.grad = torch.ones_like(leaf)
        optimizer = kind(leaves, lr=0.1, **options)
        optimizer.step()
        optimizer.step()
        optimizer.zero_grad()

    return call


for name, kind, options in (
    ("sgd", torch.optim.SGD, {}),
    ("sgd momentum", torch.optim.SGD, {"momentum": 0.9}),
    ("sgd for-loop", torch.optim.SGD, {"momentum": 0.9, "foreach": False}),
    ("adam", torch.optim.Adam, {}),
    ("adam amsgrad", torch.optim.Adam, {"amsgrad": True}),
    ("adamw for-loop", torch.optim.AdamW, {"foreach": False}),
    ("adamw fused", torch.optim.AdamW, {"fused": True}),
    ("adamw capturable", torch.optim.AdamW, {"capturable": True}),
    ("rmsprop", torch.optim.RMSprop, {"centered": True}),
    ("adagrad", torch.optim.Adagrad, {}),
    ("adafactor", torch.optim.Adafactor, {}),
    ("nadam", torch.optim.NAdam, {}),
    ("radam", torch.optim.RAdam, {}),
    ("adamax", torch.optim.Adamax, {}),
    ("adadelta", torch.optim.Adadelta, {}),
    ("lion-like sign", torch.optim.Rprop, {}),
):
    add(
        f"optimizer {name}",
        lambda m: tuple(m.real(512, 512 + 8 * i) for i in range(12)),
        _optimizer_step(kind, **options),
        needs_card="capturable" in options,
    )
