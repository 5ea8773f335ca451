"""Collectives: their results have the values that follow from what all ranks put in.

Scripts for many cards pass numbers around on the card: `all_gather_object` sends a pickle and its
length, Accelerate the shapes of a batch, experts how many tokens each of them gets. Where every
rank knows what it puts in, the result is known on every rank, and is worked out when somebody asks
for it. PyTorch does not count these writes in the version of a tensor, so what was known before is
forgotten in any case.

What C++ sends by itself (`DistributedDataParallel`) is followed by the stand-in library.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Callable

from .. import preload
from ..guard import quietly
from ..values.host_values import Content, Geometry, NotKnown
from ..values.known_values import KnownValues
from .absent_ranks import AbsentRanks, speaker_for
from .rank_values import Channel, Pieces, RankValues

MAX_SENT_BYTES = 4 << 20
"""Larger tensors are data, not numbers that decide anything; only pickles may be larger."""

_Fetch = Callable[[int, int], bytes]
"""A piece of what a rank put in; raises `NotKnown`."""


@dataclass
class Exchange:
    """What one rank does in a collective."""

    puts: Sequence[Any] = ()
    """Tensors that it puts in, piece by piece."""
    gets: list[tuple[Any, Callable[[_Fetch, Any], Any]]] = field(default_factory=list)
    """Tensors that are written, and how their values follow from pieces."""
    is_reduction: bool = False
    """Nobody knows the result if this rank does not know what it puts in."""
    peer: tuple[int, int] | None = None
    """Sender and receiver of a message."""

    @property
    def tensors(self) -> list[Any]:
        """All of them."""
        return [*self.puts, *(tensor for tensor, _ in self.gets)]


class Collectives:
    """Follows known values through the methods of process groups."""

    def __init__(
        self, torch: Any, known: KnownValues, values: RankValues, absent: AbsentRanks
    ) -> None:
        self._torch = torch
        self._known = known
        self._values = values
        self._absent = absent
        self.on_message: Callable[[Any], object] = lambda group: None
        """Called with the group in which something is sent from one rank to one other."""

    def install(self) -> None:
        """Wrap the methods that all of `torch.distributed`'s Python functions end in."""
        bindings = getattr(self._torch._C, "_distributed_c10d", None)
        if bindings is None:
            return  # a build without distributed training
        describe = _Descriptions(self._torch, bindings.ReduceOp)
        for name, describe_call in describe.by_method().items():
            original = getattr(bindings.ProcessGroup, name, None)
            if original is not None:
                setattr(bindings.ProcessGroup, name, self._following(original, describe_call))

    def _following(
        self, original: Callable[..., Any], describe: Callable[..., Exchange]
    ) -> Callable[..., Any]:
        begin, end = quietly(self._begin), quietly(self._end)

        @functools.wraps(original)
        def collective(group: Any, *arguments: Any, **options: Any) -> Any:
            begun = begin(group, describe, arguments, options)
            if begun is not None and self._is_on_host_without_some(group, begun[0]):
                return self._done_on_host(*begun)
            work = original(group, *arguments, **options)
            if begun is not None:
                end(*begun)
                if self._absent.are_here(group) is not None:
                    preload.forget_handed_on()
            return work

        return collective

    def _begin(
        self, group: Any, describe: Callable[..., Exchange], arguments: Any, options: Any
    ) -> tuple[Exchange, _Fetch | None] | None:
        rank, size = group.rank(), group.size()
        exchange = describe(rank, size, *arguments, *options.values())
        if exchange.peer is not None:
            self.on_message(group)
        are_run = self._absent.are_run(group)
        if not any(tensor.is_cuda for tensor in exchange.tensors) and are_run is None:
            return None
        own = [self._bytes_of(tensor) for tensor in exchange.puts]
        if size == 1:
            return exchange, _fetch_from(lambda _: own)
        are_here = self._absent.are_here(group)
        if (are_run or are_here) is not None and exchange.peer is not None:
            sender, receiver = exchange.peer
            self._absent.expect_message(group, sender, receiver)
        channel, number = self._post(group, rank, exchange, own, are_here is not None)
        if exchange.is_reduction and None in own:
            return exchange, None

        # The result refers to this for as long as it is known: to bytes, and never to a tensor.
        is_message = exchange.peer is not None

        def pieces_of(other: int) -> Pieces:
            if are_run is not None and not are_run[other]:
                if is_message:
                    return []  # nobody knows what it would send
                other = speaker_for(other, are_run)
            if are_here is not None and not are_here[other]:
                return channel.fetch_from_elsewhere(other, number)
            return own if other == rank else channel.fetch(other, number)

        return exchange, _fetch_from(pieces_of)

    def _is_on_host_without_some(self, group: Any, exchange: Exchange) -> bool:
        """Whether Gloo would have to reach a rank that is not run."""
        is_on_host = not any(tensor.is_cuda for tensor in exchange.tensors)
        return is_on_host and bool(exchange.tensors) and self._absent.are_run(group) is not None

    def _done_on_host(self, exchange: Exchange, fetch: _Fetch | None) -> Any:
        """Carry out a collective on the host among those who are run, and say that it is done."""
        if fetch is not None:
            # All of them before any is written: an output may be an input.
            results = [(tensor, make(fetch, tensor)) for tensor, make in exchange.gets]
            for tensor, result in results:
                tensor.detach().copy_(result)
        future = self._torch.futures.Future()
        future.set_result([tensor for tensor, _ in exchange.gets])
        bindings = self._torch._C._distributed_c10d
        return bindings._create_work_from_future(future)

    def _post(
        self, group: Any, rank: int, exchange: Exchange, own: Pieces, is_told_elsewhere: bool
    ) -> tuple[Channel, int]:
        name = str(group.group_name)
        if exchange.peer is not None:
            name = f"{name}: {exchange.peer}"
        channel = self._values.channel(name, rank)
        if exchange.peer is not None and not exchange.puts:
            return channel, channel.count()
        number = channel.post(own)
        if is_told_elsewhere:
            channel.post_elsewhere(number, own)
        return channel, number

    def _bytes_of(self, tensor: Any) -> bytes | None:
        if not self._may_be_sent(tensor):
            return None
        values = self._known.of(tensor) if tensor.is_cuda else tensor.detach()
        if values is None:
            return None
        values = values.contiguous()
        return ctypes.string_at(values.data_ptr(), values.nbytes) if values.nbytes else b""

    def _end(self, exchange: Exchange, fetch: _Fetch | None) -> None:
        by_storage: dict[int, list[tuple[Any, Callable[[_Fetch, Any], Any]]]] = {}
        for tensor, make in exchange.gets:
            if tensor.is_cuda:
                key = tensor.untyped_storage()._cdata
                by_storage.setdefault(key, []).append((tensor, make))
        for written in by_storage.values():
            self._write(written, fetch)

    def _write(
        self, written: list[tuple[Any, Callable[[_Fetch, Any], Any]]], fetch: _Fetch | None
    ) -> None:
        first = written[0][0]
        before = self._known.content_of(first)
        self._known.forget(first)
        size_bytes = first.untyped_storage().nbytes()
        is_whole = sum(tensor.nbytes for tensor, _ in written) >= size_bytes
        can_hold = all(self._is_followed(tensor) for tensor, _ in written)
        # A content is that of a whole storage.
        if fetch is None or not can_hold or (before is None and not is_whole):
            return
        parts = [(Geometry.of(tensor), make) for tensor, make in written]
        host = self._known.host

        def content() -> Any:
            with host.working():
                result = host.blank(size_bytes)
                if before is not None:
                    result.copy_(before.bytes())
                for geometry, make in parts:
                    view = geometry.view(result)
                    view.copy_(make(fetch, view))
                return result

        depth = 1 + (before.depth if before is not None else 0)
        draws = before is not None and before.draws
        self._known.keep(first, Content(host, size_bytes, content, depth=depth, draws=draws))

    def _is_followed(self, tensor: Any) -> bool:
        return self._may_be_sent(tensor) and self._known.can_hold(tensor)

    def _may_be_sent(self, tensor: Any) -> bool:
        return tensor.nbytes <= MAX_SENT_BYTES or self._known.is_pickle(tensor)


def _fetch_from(pieces_of: Callable[[int], Pieces]) -> _Fetch:
    def fetch(rank: int, place: int) -> bytes:
        pieces = pieces_of(rank)
        piece = pieces[place] if place < len(pieces) else None
        if piece is None:
            raise NotKnown
        return piece

    return fetch


class _Descriptions:
    """What each method of a process group does, from its arguments."""

    def __init__(self, torch: Any, operations: Any) -> None:
        self._torch = torch
        self._operations = operations

    def by_method(self) -> dict[str, Callable[..., Exchange]]:
        """A description for each method, called with rank, size and the method's arguments.

        Those on one tensor have had two names since 2.15.
        """
        return {
            "broadcast": self._broadcast,
            "allreduce": self._all_reduce,
            "allreduce_coalesced": self._all_reduce,
            "reduce": self._reduce,
            "allgather": self._all_gather,
            "allgather_coalesced": self._all_gather_coalesced,
            "_allgather_base": self._all_gather_into_one,
            "allgather_into_tensor_coalesced": self._all_gather_into_one,
            "all_gather_single": self._all_gather_into_one,
            "all_gather_single_coalesced": self._all_gather_into_one,
            "gather": self._gather,
            "scatter": self._scatter,
            "reduce_scatter": self._reduce_scatter,
            "_reduce_scatter_base": self._reduce_scatter_of_one,
            "reduce_scatter_tensor_coalesced": self._reduce_scatter_of_one,
            "reduce_scatter_single": self._reduce_scatter_of_one,
            "reduce_scatter_single_coalesced": self._reduce_scatter_of_one,
            "alltoall": self._all_to_all,
            "alltoall_base": self._all_to_all_of_one,
            "all_to_all_single": self._all_to_all_of_one,
            "send": self._send,
            "recv": self._receive,
        }

    def _broadcast(self, rank: int, size: int, tensors: Any, options: Any = 0, *_: Any) -> Exchange:
        tensors = self._flat(tensors)
        root = _root(options)
        if rank == root:
            return Exchange(puts=tensors)
        return Exchange(gets=[(each, _of(root, place)) for place, each in enumerate(tensors)])

    def _all_reduce(
        self, rank: int, size: int, tensors: Any, options: Any = None, *_: Any
    ) -> Exchange:
        tensors = self._flat(tensors)
        gets = [(each, self._sum(options, size, place)) for place, each in enumerate(tensors)]
        return Exchange(puts=tensors, gets=gets, is_reduction=True)

    def _reduce(self, rank: int, size: int, tensors: Any, options: Any = None, *_: Any) -> Exchange:
        exchange = self._all_reduce(rank, size, tensors, options)
        if rank != _root(options):
            exchange.gets = []
        return exchange

    def _all_gather(self, rank: int, size: int, outputs: Any, inputs: Any, *_: Any) -> Exchange:
        gets = [(each, _of(other, 0)) for other, each in enumerate(self._flat(outputs))]
        return Exchange(puts=self._flat(inputs), gets=gets)

    def _all_gather_coalesced(
        self, rank: int, size: int, outputs: Any, inputs: Any, *_: Any
    ) -> Exchange:
        gets = [
            (each, _of(other, place))
            for other, tensors in enumerate(outputs)
            for place, each in enumerate(tensors)
        ]
        return Exchange(puts=self._flat(inputs), gets=gets)

    def _all_gather_into_one(
        self, rank: int, size: int, outputs: Any, inputs: Any, *_: Any
    ) -> Exchange:
        def gathered(place: int) -> Callable[[_Fetch, Any], Any]:
            def make(fetch: _Fetch, view: Any) -> Any:
                whole = b"".join(fetch(other, place) for other in range(size))
                return _as(whole, view)

            return make

        gets = [(each, gathered(place)) for place, each in enumerate(self._flat(outputs))]
        return Exchange(puts=self._flat(inputs), gets=gets)

    def _gather(
        self, rank: int, size: int, outputs: Any, inputs: Any, options: Any = 0, *_: Any
    ) -> Exchange:
        exchange = self._all_gather(rank, size, outputs, inputs)
        if rank != _root(options):
            exchange.gets = []
        return exchange

    def _scatter(
        self, rank: int, size: int, outputs: Any, inputs: Any, options: Any = 0, *_: Any
    ) -> Exchange:
        root = _root(options)
        gets = [(each, _of(root, rank)) for each in self._flat(outputs)]
        return Exchange(puts=self._flat(inputs) if rank == root else (), gets=gets)

    def _reduce_scatter(
        self, rank: int, size: int, outputs: Any, inputs: Any, options: Any = None, *_: Any
    ) -> Exchange:
        gets = [(each, self._sum(options, size, rank)) for each in self._flat(outputs)]
        return Exchange(puts=self._flat(inputs), gets=gets, is_reduction=True)

    def _reduce_scatter_of_one(
        self, rank: int, size: int, outputs: Any, inputs: Any, options: Any = None, *_: Any
    ) -> Exchange:
        puts = [part for each in self._flat(inputs) for part in _parts(each, [], size)]
        gets = [
            (each, self._sum(options, size, place * size + rank))
            for place, each in enumerate(self._flat(outputs))
        ]
        return Exchange(puts=puts, gets=gets, is_reduction=True)

    def _all_to_all(self, rank: int, size: int, outputs: Any, inputs: Any, *_: Any) -> Exchange:
        gets = [(each, _of(other, rank)) for other, each in enumerate(self._flat(outputs))]
        return Exchange(puts=self._flat(inputs), gets=gets)

    def _all_to_all_of_one(
        self,
        rank: int,
        size: int,
        output: Any,
        source: Any,
        output_splits: Any = (),
        input_splits: Any = (),
        *_: Any,
    ) -> Exchange:
        parts = _parts(output, list(output_splits), size)
        gets = [(each, _of(other, rank)) for other, each in enumerate(parts) if each.numel()]
        return Exchange(puts=_parts(source, list(input_splits), size), gets=gets)

    def _send(self, rank: int, size: int, tensors: Any, target: Any, *_: Any) -> Exchange:
        return Exchange(puts=self._flat(tensors), peer=(rank, int(target)))

    def _receive(self, rank: int, size: int, tensors: Any, source: Any, *_: Any) -> Exchange:
        gets = [(each, _of(int(source), place)) for place, each in enumerate(self._flat(tensors))]
        return Exchange(gets=gets, peer=(int(source), rank))

    def _flat(self, value: Any) -> list[Any]:
        return list(self._tensors(value))

    def _tensors(self, value: Any) -> Iterator[Any]:
        """The tensors in lists of lists."""
        if isinstance(value, self._torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            for each in value:
                yield from self._tensors(each)

    def _sum(self, options: Any, size: int, place: int) -> Callable[[_Fetch, Any], Any]:
        operation = getattr(options, "reduceOp", options)

        def make(fetch: _Fetch, view: Any) -> Any:
            values = [_as(fetch(other, place), view) for other in range(size)]
            return self._reduced(operation, values)

        return make

    def _reduced(self, operation: Any, values: Iterable[Any]) -> Any:
        torch, operations = self._torch, self._operations
        stacked = torch.stack(list(values))
        if operation is None or operation == operations.SUM:
            return stacked.sum(0)
        if operation == operations.AVG:
            return stacked.sum(0) / len(stacked)
        if operation == operations.MIN:
            return stacked.amin(0)
        if operation == operations.MAX:
            return stacked.amax(0)
        if operation == operations.PRODUCT:
            return stacked.prod(0)
        raise NotKnown


def _root(options: Any) -> int:
    return int(getattr(options, "rootRank", options))


def _of(rank: int, place: int) -> Callable[[_Fetch, Any], Any]:
    """The values of one piece of one rank."""
    return lambda fetch, view: _as(fetch(rank, place), view)


def _as(content: bytes, view: Any) -> Any:
    """Bytes as numbers of the kind and shape that a tensor has."""
    import torch

    if len(content) != view.nbytes:
        raise NotKnown
    values = torch.frombuffer(bytearray(content), dtype=torch.uint8).view(view.dtype)
    return values.reshape(view.shape)


def _parts(tensor: Any, sizes: list[int], count: int) -> list[Any]:
    """What goes to each rank, or comes from it: parts along the first dimension."""
    if not sizes:
        length = tensor.size(0) // count if tensor.dim() else 0
        sizes = [length] * count
    parts, start = [], 0
    for size in sizes:
        parts.append(tensor.narrow(0, start, size))
        start += size
    return parts
