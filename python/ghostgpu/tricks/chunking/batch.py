"""Which arguments of a call are a batch, and how it is cut.

A tensor belongs to the batch if its first dimension is as long as that of most others. Everything
else (a mask for all samples, a scalar, a number) goes to every chunk as it is. A tensor that only
happens to be as long as the batch is told apart by trying (`examination`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from ..refusal import Refused
from .nested import Nested, holds_tensors, is_plain

ALTERNATIVE = "use checkpointing, or a smaller batch with ghostgpu.accumulate"


@dataclass(frozen=True)
class Batch:
    """How many samples a call has, and the positions of the leaves that are cut."""

    samples: int
    cut: frozenset[int]

    def chunk(self, leaves: list[Any], begin: int, end: int) -> list[Any]:
        """The leaves of the samples from `begin` to `end`."""
        return [leaf[begin:end] if at in self.cut else leaf for at, leaf in enumerate(leaves)]


def bounds(samples: int, chunks: int) -> list[tuple[int, int]]:
    """Begin and end of each chunk; their sizes differ by at most one, larger ones first."""
    chunks = max(1, min(chunks, samples))
    size, larger = divmod(samples, chunks)
    ends = [0]
    for at in range(chunks):
        ends.append(ends[-1] + size + (at < larger))
    return list(zip(ends, ends[1:]))


def find_batch(arguments: Nested) -> Batch | None:
    """The batch of a call; None if no argument has one."""
    lengths: Counter[int] = Counter()
    for at in arguments.tensors():
        tensor = arguments.leaves[at]
        if tensor.dim() > 0 and not tensor.is_nested and tensor.layout == torch.strided:
            lengths[tensor.shape[0]] += 1
    if not lengths:
        return None
    # `most_common` keeps the order of first occurrence among equals: the first argument decides.
    samples = lengths.most_common(1)[0][0]
    return Batch(samples, _as_long(arguments, samples))


def _as_long(arguments: Nested, samples: int) -> frozenset[int]:
    leaves = arguments.leaves
    return frozenset(
        at for at in arguments.tensors() if leaves[at].dim() > 0 and leaves[at].shape[0] == samples
    )


def other_readings(batch: Batch, arguments: Nested) -> Iterator[Batch]:
    """Batches without one of the tensors that may be as long by chance, likely ones first."""
    likely = sorted(batch.cut, key=lambda at: (not _is_square(arguments.leaves[at]), at))
    for at in likely:
        if len(batch.cut) > 1:
            yield Batch(batch.samples, batch.cut - {at})


def _is_square(tensor: torch.Tensor) -> bool:
    return tensor.dim() == 2 and tensor.shape[0] == tensor.shape[1]


def same_reading(arguments: Nested, paths: frozenset[str]) -> Batch | None:
    """The batch of another call of the same form; None if its tensors do not go together."""
    cut = frozenset(at for at, path in enumerate(arguments.paths) if path in paths)
    lengths = {arguments.leaves[at].shape[:1] for at in cut}
    if len(lengths) != 1 or not (length := lengths.pop()):
        return None
    return Batch(length[0], cut)


def require_openable(arguments: Nested, model: str) -> None:
    """Refuse arguments with tensors that cannot be seen, and so cannot be cut."""
    for path, leaf in zip(arguments.paths, arguments.leaves):
        if isinstance(leaf, torch.Tensor):
            if leaf.is_nested or leaf.layout != torch.strided:
                kind = "nested" if leaf.is_nested else str(leaf.layout).removeprefix("torch.")
                raise Refused(
                    f"{model} cannot be run in chunks: {path} is a {kind} tensor.", ALTERNATIVE
                )
        elif not is_plain(leaf) and holds_tensors(leaf):
            raise Refused(
                f"{model} cannot be run in chunks: nothing is known about the samples in {path}, "
                f"which is a {type(leaf).__name__}.",
                ALTERNATIVE,
            )
