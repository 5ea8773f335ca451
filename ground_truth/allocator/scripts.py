"""Scripts that use the allocator in ways that a usual training loop does not."""

from __future__ import annotations

from typing import Callable, Dict

import torch
from torch import nn

MIB = 1 << 20
Mark = Callable[[], None]


def two_streams(mark: Mark) -> None:
    """Batches are copied on a stream of their own; a third stream computes a second loss."""
    model = nn.Sequential(nn.Linear(2048, 8192), nn.GELU(), nn.Linear(8192, 2048)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    copying, computing = torch.cuda.Stream(), torch.cuda.Stream()
    mark()
    for step in range(6):
        with torch.cuda.stream(copying):
            rows = 512 + 256 * (step % 3)
            batch = torch.randn(rows, 2048).cuda(non_blocking=True)
        torch.cuda.current_stream().wait_stream(copying)
        batch.record_stream(torch.cuda.current_stream())
        computing.wait_stream(copying)
        batch.record_stream(computing)
        output = model(batch)
        with torch.cuda.stream(computing):
            penalty = batch.square().mean()
        torch.cuda.current_stream().wait_stream(computing)
        penalty.record_stream(torch.cuda.current_stream())
        loss = output.square().mean() + penalty
        del batch, output
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.synchronize()
        mark()


def memory_pools(mark: Mark) -> None:
    """Tensors in two pools of their own beside the default one."""
    first, second = torch.cuda.MemPool(), torch.cuda.MemPool()
    kept = []
    for step in range(8):
        with torch.cuda.use_mem_pool(first):
            kept.append(torch.empty((step + 1) * 3 * MIB, dtype=torch.uint8, device="cuda"))
            kept.append(torch.empty(700 * (step + 1), dtype=torch.uint8, device="cuda"))
        with torch.cuda.use_mem_pool(second):
            kept.append(torch.empty(11 * MIB, dtype=torch.uint8, device="cuda"))
        kept.append(torch.empty(5 * MIB, dtype=torch.uint8, device="cuda"))
        if step % 3 == 2:
            del kept[::2]
            torch.cuda.empty_cache()
        mark()
    kept.clear()
    mark()
    del first
    torch.cuda.empty_cache()
    mark()


def captured_graph(mark: Mark) -> None:
    """A training step captured as a graph, as the manual shows it, and steps beside it."""
    model = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    given = torch.randn(256, 1024, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            optimizer.zero_grad(set_to_none=True)
            model(given).square().mean().backward()
            optimizer.step()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    mark()
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        loss = model(given).square().mean()
        loss.backward()
        optimizer.step()
    mark()
    for step in range(4):
        graph.replay()
        (model(torch.randn(64 * (step + 1), 1024, device="cuda")).mean() * 0).item()
        torch.cuda.synchronize()
        mark()


def emptied_cache(mark: Mark) -> None:
    """Training and evaluation in turns, with `empty_cache` between them."""
    model = nn.Sequential(
        nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU()
    ).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(4):
        model(torch.randn(8 + 4 * step, 3, 96, 96, device="cuda")).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        mark()
        torch.cuda.empty_cache()
        mark()
        with torch.no_grad():
            model(torch.randn(32, 3, 128, 128, device="cuda")).mean().item()
        mark()
        torch.cuda.empty_cache()
    mark()


def caught_out_of_memory(mark: Mark) -> None:
    """The batch is doubled until memory is out, then halved, as batch size finders do."""
    model = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(24)]).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    rows = 1024
    for _ in range(16):
        # The exception holds the frames of the failed step, and with them its tensors.
        failed = False
        try:
            model(torch.randn(rows, 1024, device="cuda")).square().mean().backward()
            optimizer.step()
        except torch.OutOfMemoryError:
            failed = True
        optimizer.zero_grad()
        mark()
        rows = rows * 5 // 8 if failed else rows * 2


SCRIPTS: Dict[str, Callable[[Mark], None]] = {
    "two-streams": two_streams,
    "memory-pools": memory_pools,
    "captured-graph": captured_graph,
    "emptied-cache": emptied_cache,
    "caught-out-of-memory": caught_out_of_memory,
}
