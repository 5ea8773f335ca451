"""Collectives of one rank: their results have the values of what went in.

`torchrun --nproc-per-node 1` is how many people try a script for many cards, and such scripts pass
numbers around on the card: `all_gather_object` sends a pickle and its length, Accelerate the shapes
of a batch. With a single rank the result is a copy of the input. PyTorch does not count these
writes in the version of a tensor, so without this the result would keep what it had before.

What C++ sends by itself (`DistributedDataParallel`) is followed by the stand-in library.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, Callable

from .guard import quietly
from .known_values import KnownValues

_OUTPUTS_FIRST = (
    *("allgather", "_allgather_base", "allgather_into_tensor_coalesced", "all_gather_single"),
    *("gather", "scatter", "reduce_scatter", "_reduce_scatter_base", "reduce_scatter_single"),
    *("alltoall", "alltoall_base"),
)
"""Methods of a process group that write their first argument, and read their second."""


class OneRankCollectives:
    """Passes known values on from the input of a collective to its result."""

    def __init__(self, torch: Any, known: KnownValues) -> None:
        self._torch = torch
        self._known = known

    def install(self) -> None:
        """Wrap the methods that all of `torch.distributed`'s Python functions end in."""
        bindings = getattr(self._torch._C, "_distributed_c10d", None)
        if bindings is None:
            return  # a build without distributed training
        for name in _OUTPUTS_FIRST:
            original = getattr(bindings.ProcessGroup, name, None)
            if original is not None:
                setattr(bindings.ProcessGroup, name, self._passing_on(original))

    def _passing_on(self, original: Callable[..., Any]) -> Callable[..., Any]:
        pass_on = quietly(self._pass_on)

        @functools.wraps(original)
        def collective(group: Any, *arguments: Any, **options: Any) -> Any:
            work = original(group, *arguments, **options)
            if group.size() == 1 and len(arguments) > 1:
                pass_on(arguments[0], arguments[1])
            return work

        return collective

    def _pass_on(self, outputs: Any, inputs: Any) -> None:
        for output, source in zip(self._tensors(outputs), self._tensors(inputs)):
            if output.is_cuda:
                self._known.overwrite(output, self._known.of(source))

    def _tensors(self, value: Any) -> Iterator[Any]:
        """The tensors in lists of lists: with one rank, each inner list has one."""
        if isinstance(value, self._torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            for each in value:
                yield from self._tensors(each)
