"""Batches that are the same on every machine."""

from __future__ import annotations

import random
from typing import Any

import torch

from context import Context

LENGTH_SEED = 20261115


def images(context: Context, batch: int, *shape: int) -> torch.Tensor:
    """Images on the CPU, as a data loader returns them; zeros take no time to create."""
    return torch.zeros(batch, *shape)


def labels(context: Context, batch: int, classes: int) -> torch.Tensor:
    return torch.arange(batch) % classes


def tokens(context: Context, batch: int, length: int, vocabulary: int) -> torch.Tensor:
    """Token numbers made on the card itself, as benchmark scripts do."""
    return torch.randint(0, vocabulary, (batch, length), device=context.device)


def classified_images(context: Context, batch: int, side: int, classes: int) -> Any:
    def make(step: int) -> tuple[torch.Tensor, torch.Tensor]:
        return images(context, batch, 3, side, side), labels(context, batch, classes)

    return make


def varying(step: int, low: int, high: int, multiple: int = 1) -> int:
    """A length that changes from step to step, from Python's own generator on both sides."""
    chooser = random.Random(LENGTH_SEED + step)
    return chooser.randrange(low, high + 1, multiple)
