"""Collectives that scripts call themselves, and trainings with less memory than they would like."""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.distributed as dist
from data_parallel import ddp
from sharded import fsdp2
from small_model import WIDTH

MIB = 1 << 20


def objects() -> None:
    """Python's objects, which travel as bytes on the card."""
    rank, size = dist.get_rank(), dist.get_world_size()
    mine = {"rank": rank, "text": "x" * 5000 * (rank + 1)}
    everything: list[Any] = [None] * size
    for _ in range(3):
        dist.all_gather_object(everything, mine)
        told = [mine if rank == 1 else None, "second"]
        dist.broadcast_object_list(told, 1)
        dist.gather_object(mine, everything if rank == 0 else None)
        part: list[Any] = [None]
        dist.scatter_object_list(part, [[at] * 1000 for at in range(size)] if rank == 0 else None)
        assert part == [[rank] * 1000]
    assert [each["rank"] for each in everything] == list(range(size))


def plain(is_async: bool) -> None:
    """One of each, with and without waiting at once."""
    rank, size = dist.get_rank(), dist.get_world_size()
    for step in range(4):
        whole = torch.randn(size * (step + 1) * 700, WIDTH, device="cuda")
        part = torch.empty_like(whole[: len(whole) // size])
        parts = [torch.empty_like(part) for _ in range(size)]
        works = [
            dist.reduce_scatter_tensor(part, whole, async_op=is_async),
            dist.all_gather_into_tensor(whole, part, async_op=is_async),
            dist.all_gather(parts, part, async_op=is_async),
            dist.all_reduce(part * 2, async_op=is_async),
            dist.reduce(part, 0, async_op=is_async),
            dist.broadcast(whole, 0, async_op=is_async),
            dist.gather(part, parts if rank == 0 else None, async_op=is_async),
            dist.scatter(part, parts if rank == 0 else None, async_op=is_async),
            dist.all_to_all(parts, list(whole.chunk(size)), async_op=is_async),
            dist.reduce_scatter(part, list(whole.chunk(size)), async_op=is_async),
        ]
        for work in works:
            if work is not None:
                work.wait()
        del works
        there, back = (rank + 1) % size, (rank - 1) % size
        messages = [dist.P2POp(dist.isend, part, there), dist.P2POp(dist.irecv, parts[0], back)]
        for work in dist.batch_isend_irecv(messages):
            work.wait()
        (part.sum() + parts[0].sum()).item()


def groups() -> None:
    """Further groups, of neighbours and of every second rank, on streams of their own."""
    rank, size = dist.get_rank(), dist.get_world_size()
    halves = [dist.new_group(list(range(at, size, 2))) for at in range(2)]
    mine = halves[rank % 2]
    x = torch.randn(3000, WIDTH, device="cuda")
    for _ in range(3):
        work = dist.all_reduce(x.clone(), group=mine, async_op=True)
        gathered = x.new_empty(len(x) * dist.get_world_size(mine), WIDTH)
        dist.all_gather_into_tensor(gathered, x, group=mine)
        dist.all_reduce(x.clone())
        work.wait()
    x.sum().item()


def with_at_most(mib: int, training: Callable[[], None]) -> None:
    """The allocator of every rank gets no more than that."""
    total = torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory
    torch.cuda.set_per_process_memory_fraction(mib * MIB / total)
    training()


CASES: dict[str, Callable[[], None]] = {
    "objects": objects,
    "objects-4": objects,
    "collectives": lambda: plain(is_async=False),
    "collectives-async": lambda: plain(is_async=True),
    "collectives-4": lambda: plain(is_async=False),
    "groups-4": groups,
    "cap-fsdp2-retries": lambda: with_at_most(216, fsdp2),
    "cap-fsdp2-out": lambda: with_at_most(160, fsdp2),
    "cap-ddp-retries": lambda: with_at_most(280, lambda: ddp(bucket_cap_mb=1)),
    "cap-ddp-out": lambda: with_at_most(210, lambda: ddp(bucket_cap_mb=1)),
}
