"""Changes the batch size of an existing `DataLoader`."""

from __future__ import annotations

from typing import Any


def why_not_settable(loader: Any) -> str | None:
    """Why this loader's batch size cannot be changed, as the end of a sentence; None if it can."""
    sampler = loader.batch_sampler
    if sampler is None:
        return "has no batch of its own (batch_size=None): the dataset makes the batches"
    size = getattr(sampler, "batch_size", None)
    if isinstance(size, bool) or not isinstance(size, int):
        return f"takes its batches from a {type(sampler).__name__}, which has no `batch_size`"
    return None


def set_batch(loader: Any, batch: int) -> None:
    """Set a loader's batch size; only if `why_not_settable` returned None."""
    sampler = loader.batch_sampler
    # A sampler that wraps another one takes its batch size from the inner one.
    while not _has_own_batch(sampler) and hasattr(sampler, "batch_sampler"):
        sampler = sampler.batch_sampler
    sampler.batch_size = batch
    # `DataLoader.__setattr__` refuses changes after construction.
    if loader.__dict__.get("batch_size") is not None:
        loader.__dict__["batch_size"] = batch
    inner = loader.__dict__.get("base_dataloader")
    if inner is not None and inner.__dict__.get("batch_size") is not None:
        inner.__dict__["batch_size"] = batch


def _has_own_batch(sampler: Any) -> bool:
    return "batch_size" in getattr(sampler, "__dict__", {})
