"""The model that most cases train, and the plain loop that trains it."""

from __future__ import annotations

from typing import Any, Callable

import torch
from torch import nn

WIDTH, LAYERS, TOKENS, BATCH = 512, 4, 128, 4
STEPS = 4


class Block(nn.Module):
    """A layer of a transformer, as plain as it can be."""

    def __init__(self, width: int = WIDTH) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


class Model(nn.Module):
    """Layers behind each other."""

    def __init__(self, layers: int = LAYERS, width: int = WIDTH) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.head = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class CheckpointedModel(Model):
    """The same, with every layer computed again in the backward pass."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        from torch.utils.checkpoint import checkpoint

        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return self.head(x)


def batch(width: int = WIDTH) -> torch.Tensor:
    """What every rank trains with."""
    return torch.randn(BATCH, TOKENS, width, device="cuda")


def adam(model: nn.Module, **options: Any) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=1e-4, **options)


def nothing() -> None:
    """What a loop does between a backward pass and its step, unless a case says otherwise."""


def train(
    model: nn.Module,
    optimizer: Any,
    inputs: Callable[[], torch.Tensor] = batch,
    before_step: Callable[[], Any] = nothing,
    set_to_none: bool = True,
) -> None:
    """A plain loop."""
    for _ in range(STEPS):
        loss = model(inputs()).square().mean()
        loss.backward()
        before_step()
        optimizer.step()
        optimizer.zero_grad(set_to_none=set_to_none)
        loss.item()
