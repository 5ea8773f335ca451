"""Puts the results of chunks together: rows one after the other, losses by their weights."""

from __future__ import annotations

import itertools
from typing import Any

import torch

from ..refusal import Refused
from .batch import ALTERNATIVE
from .comparison import differs
from .losses import Weighting, combined
from .nested import Nested, flatten, holds_tensors, is_plain


class Outputs:
    """Collects what chunks return."""

    def __init__(self, model: str, samples: int, weightings: dict[str, Weighting]) -> None:
        self._model = model
        self._samples = samples
        self._weightings = weightings
        self._first: Nested | None = None
        self._whole: dict[int, torch.Tensor] = {}
        self._pieces: dict[int, list[torch.Tensor]] = {}
        self._rows: dict[int, int] = {}
        self._counts: dict[int, list[Any]] = {}
        self._total: dict[int, Any] = {}

    def add(
        self,
        value: Any,
        samples: int,
        arguments: Nested,
        leaves: list[Any],
        is_alias: bool = False,
    ) -> None:
        """Take what the model returned for the next chunk, of so many samples.

        `is_alias`: the chunk is the whole batch, and its results need no copy.
        """
        nested = flatten(value, "output")
        if self._first is None:
            self._require_openable(nested)
            self._first = nested.with_empty_tensors()
        elif nested.paths != self._first.paths:
            raise self._refused(
                f"a chunk returns {_listed(nested)}, another {_listed(self._first)}"
            )
        for path, leaf, first in zip(nested.paths, nested.leaves, self._first.leaves):
            is_tensor = isinstance(leaf, torch.Tensor)
            if is_tensor != isinstance(first, torch.Tensor) or (
                not is_tensor and differs(leaf, first)
            ):
                raise self._refused(f"{path} is {first} for a chunk and {leaf} for another")
        for at in nested.tensors():
            tensor = nested.leaves[at].detach()
            if tensor.dim() == 0:
                self._add_loss(at, nested.paths[at], tensor, samples, arguments, leaves)
            else:
                begin = self._rows.get(at, 0)
                self._rows[at] = begin + tensor.shape[0]
                if is_alias:
                    self._whole[at] = tensor
                else:
                    self._add_rows(at, tensor, samples, (begin, self._rows[at]))

    def _add_rows(self, at: int, tensor: torch.Tensor, samples: int, rows: tuple[int, int]) -> None:
        # Written in place, so that chunks and the whole of them are not held at the same time.
        if at not in self._whole and at not in self._pieces and tensor.shape[0] % samples == 0:
            total = tensor.shape[0] // samples * self._samples
            self._whole[at] = _empty(tensor, total)
        whole = self._whole.get(at)
        fits = whole is not None and whole.shape[1:] == tensor.shape[1:]
        if whole is not None and fits and rows[1] <= whole.shape[0]:
            whole[rows[0] : rows[1]] = tensor
            return
        if whole is not None:
            self._pieces[at] = [whole[: rows[0]].clone()]
            del self._whole[at]
        self._pieces.setdefault(at, []).append(tensor)

    def _add_loss(
        self,
        at: int,
        path: str,
        loss: torch.Tensor,
        samples: int,
        arguments: Nested,
        leaves: list[Any],
    ) -> None:
        weighting = self._weightings.get(path)
        if weighting is None:
            raise self._refused(f"{path} is one number for all samples")
        self._pieces.setdefault(at, []).append(loss)
        self._counts.setdefault(at, []).append(weighting.count(arguments, leaves, samples))

    @property
    def bytes_of_rows(self) -> int:
        """How large the results are that have rows, in float32 at least, as losses are."""
        rows = [*self._whole.values(), *itertools.chain.from_iterable(self._pieces.values())]
        return sum(
            each.numel() * max(4, each.element_size()) for each in rows if each.is_floating_point()
        )

    def finished(self) -> tuple[Nested, list[int], list[torch.Tensor]]:
        """The form of the result, the positions of its tensors, and these."""
        assert self._first is not None
        positions = self._first.tensors()
        tensors = []
        for at in positions:
            whole = self._whole.get(at)
            pieces = self._pieces.get(at, [])
            if whole is not None:
                if whole.shape[0] != self._rows[at]:
                    whole = whole[: self._rows[at]].clone()
                tensors.append(whole)
            elif at in self._counts:
                weighting = self._weightings[self._first.paths[at]]
                counts = self._counts[at]
                self._total[at] = weighting.total(counts)
                weights = [weighting.weight(each, self._total[at], pieces[0]) for each in counts]
                tensors.append(combined(pieces, weights))
            else:
                try:
                    tensors.append(torch.cat(pieces))
                except RuntimeError:
                    shapes = sorted({str(list(piece.shape[1:])) for piece in pieces})
                    reason = f"the rows of {self._first.paths[at]} have the shapes "
                    raise self._refused(reason + " and ".join(shapes)) from None
        self._whole.clear()
        self._pieces.clear()
        return self._first, positions, tensors

    def rows_of(self, at: int, begin: int, end: int) -> tuple[int, int]:
        """Which rows of an output are those of the samples from `begin` to `end`."""
        rows = self._rows[at]
        if rows % self._samples:
            raise self._refused(f"an output has {rows} rows for {self._samples} samples")
        return begin * (rows // self._samples), end * (rows // self._samples)

    def weight_of(
        self, at: int, leaves: list[Any], arguments: Nested, samples: int
    ) -> torch.Tensor:
        """The share of a chunk in an output that is a loss."""
        assert self._first is not None
        weighting = self._weightings[self._first.paths[at]]
        count = weighting.count(arguments, leaves, samples)
        return weighting.weight(count, self._total[at], self._first.leaves[at])

    def _require_openable(self, nested: Nested) -> None:
        for path, leaf in zip(nested.paths, nested.leaves):
            is_tensor = isinstance(leaf, torch.Tensor)
            if is_tensor and (leaf.is_nested or leaf.layout != torch.strided):
                raise self._refused(f"{path} is not a dense tensor")
            if not is_tensor and not is_plain(leaf) and holds_tensors(leaf):
                raise self._refused(f"{path} is a {type(leaf).__name__}, which cannot be joined")

    def _refused(self, reason: str) -> Refused:
        return Refused(f"{self._model} cannot be run in chunks: {reason}.", ALTERNATIVE)


def _empty(like: torch.Tensor, rows: int) -> torch.Tensor:
    shape = (rows, *like.shape[1:])
    is_last = (
        like.dim() == 4
        and not like.is_contiguous()
        and like.is_contiguous(memory_format=torch.channels_last)
    )
    order = torch.channels_last if is_last else torch.contiguous_format
    return torch.empty(shape, dtype=like.dtype, device=like.device, memory_format=order)


def _listed(nested: Nested) -> str:
    return ", ".join(nested.paths[:4]) + (", …" if len(nested.paths) > 4 else "")
