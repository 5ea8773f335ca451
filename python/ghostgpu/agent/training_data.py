"""How many samples the script's training loader has, and how many it puts into a batch.

No batch is larger than the data. A search for the largest batch must know the size of the data even
if the batch is set by an argument, where no other part of the agent looks at the loader.
"""

from __future__ import annotations

import functools
from typing import Any

from .guard import quietly
from .report import RECORD, TrainingData


class TrainingDataObserver:
    """Observes every batch that is loaded before the first optimizer step."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch

    def install(self) -> None:
        from torch.utils.data import dataloader

        patched: Any = dataloader._BaseDataLoaderIter
        original = patched.__next__
        note = quietly(self._note)

        @functools.wraps(original)
        def take(batches: Any) -> Any:
            batch = original(batches)
            if RECORD.report.steps == 0:
                note(batches)
            return batch

        patched.__next__ = take

    def _note(self, batches: Any) -> None:
        # Evaluation data does not limit the training batch.
        if not self._torch.is_grad_enabled():
            return
        sampler = getattr(batches, "_index_sampler", None)
        batch = getattr(sampler, "batch_size", None)
        samples = _samples(sampler)
        if samples is None:
            return
        seen = RECORD.report.training_data
        # If several loaders are iterated, the largest is assumed to be the training loader.
        if seen is None or samples > seen.samples:
            RECORD.report.training_data = TrainingData(samples, batch if _is_count(batch) else None)


def _samples(sampler: Any) -> int | None:
    """How many samples one pass has; None for data of unknown length."""
    try:
        return len(getattr(sampler, "sampler", sampler))
    except (TypeError, NotImplementedError, AttributeError):
        return None


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
