"""Batches cut to fewer tokens, to see how memory grows with the sequence.

A script without an argument for the sequence length still works with whatever length its batches
have. So batches are cut as they leave the `DataLoader`.
"""

from __future__ import annotations

from typing import Any

from ...tricks.sequences import cut, named_tensors, sequence_length


class CutBatches:
    """Iterates a loader's batches and cuts them; also finds out how long they are."""

    def __init__(self, torch: Any, batches: Any, report: Any, length: int | None) -> None:
        self._torch = torch
        self._batches = batches
        self._report = report
        self._length = length
        self._is_first = True

    def __iter__(self) -> CutBatches:
        return self

    def __next__(self) -> Any:
        batch = next(self._batches)
        if self._is_first:
            self._is_first = False
            self._look_at(batch)
        own = self._report.seq
        if self._length is None or own is None or self._length >= own:
            return batch
        return cut(self._torch, batch, own, self._length)

    def __getattr__(self, name: str) -> Any:
        # Frameworks use attributes of PyTorch's iterator beyond the iterator protocol.
        return getattr(self._batches, name)

    def _look_at(self, batch: Any) -> None:
        report = self._report
        if report.seq is not None:
            return
        length = sequence_length(self._torch, batch)
        if length is None:
            report.no_sequence_because = (
                "the batches have no whole numbers in rows, as tokens are, that could be cut"
            )
            return
        report.seq = length
        names = [
            name
            for name, tensor in named_tensors(self._torch, batch)
            if tensor.dim() >= 2 and tensor.size(1) == length
        ]
        report.seq_place = f"{', '.join(names)}, of {length} tokens"
