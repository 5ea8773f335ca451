"""One small training of several ranks, by the name of its strategy. Started by `torchrun`.

    torchrun --nproc-per-node 2 train.py fsdp2

The same file runs on a real card and on virtual ones. Every rank prints one line of JSON with what
its allocator had: nothing else is compared.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Callable

import torch
import torch.distributed as dist
from torch import nn

WIDTH, LAYERS, HEADS, TOKENS, BATCH = 512, 4, 8, 128, 4
STEPS = 4


class Block(nn.Module):
    """A layer of a transformer, as plain as it can be."""

    def __init__(self, width: int = WIDTH) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


class Model(nn.Module):
    """Layers behind each other."""

    def __init__(self, layers: int = LAYERS) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(layers))
        self.head = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def batch() -> torch.Tensor:
    """What every rank trains with."""
    return torch.randn(BATCH, TOKENS, WIDTH, device="cuda")


def train(model: nn.Module, optimizer: Any, inputs: Callable[[], torch.Tensor] = batch) -> None:
    """A plain loop."""
    for _ in range(STEPS):
        loss = model(inputs()).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        loss.item()


def adam(model: nn.Module, **options: Any) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=1e-4, **options)


def ddp(**options: Any) -> None:
    device = torch.cuda.current_device()
    model = nn.parallel.DistributedDataParallel(Model().cuda(), device_ids=[device], **options)
    train(model, adam(model))


def ddp_accumulation() -> None:
    device = torch.cuda.current_device()
    model = nn.parallel.DistributedDataParallel(Model().cuda(), device_ids=[device])
    optimizer = adam(model)
    for _ in range(STEPS):
        with model.no_sync():
            model(batch()).square().mean().backward()
        model(batch()).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def sync_batch_norm() -> None:
    device = torch.cuda.current_device()
    plain = nn.Sequential(
        nn.Conv2d(3, 32, 3), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 8, 3)
    ).cuda()
    model = nn.parallel.DistributedDataParallel(
        nn.SyncBatchNorm.convert_sync_batchnorm(plain), device_ids=[device]
    )
    train(model, adam(model), lambda: torch.randn(8, 3, 64, 64, device="cuda"))


def zero() -> None:
    from torch.distributed.optim import ZeroRedundancyOptimizer

    device = torch.cuda.current_device()
    model = nn.parallel.DistributedDataParallel(Model().cuda(), device_ids=[device])
    optimizer = ZeroRedundancyOptimizer(
        model.parameters(), optimizer_class=torch.optim.AdamW, lr=1e-4
    )
    train(model, optimizer)


def fsdp1(**options: Any) -> None:
    from functools import partial

    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy

    policy = partial(transformer_auto_wrap_policy, transformer_layer_cls={Block})
    model = FullyShardedDataParallel(
        Model().cuda(),
        auto_wrap_policy=policy,
        device_id=torch.cuda.current_device(),
        use_orig_params=True,
        **options,
    )
    train(model, adam(model))


def fsdp1_bf16() -> None:
    from torch.distributed.fsdp import MixedPrecision

    kind = torch.bfloat16
    fsdp1(mixed_precision=MixedPrecision(param_dtype=kind, reduce_dtype=kind, buffer_dtype=kind))


def fsdp2(is_meta: bool = False, **options: Any) -> None:
    from torch.distributed.fsdp import fully_shard

    if is_meta:
        with torch.device("meta"):
            model = Model()
    else:
        model = Model().cuda()
    for block in model.blocks:
        fully_shard(block, **options)
    fully_shard(model, **options)
    if is_meta:
        model.to_empty(device="cuda")
    train(model, adam(model))


def fsdp2_bf16() -> None:
    from torch.distributed.fsdp import MixedPrecisionPolicy

    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    fsdp2(mp_policy=policy)


def hsdp() -> None:
    from torch.distributed.device_mesh import init_device_mesh

    half = dist.get_world_size() // 2
    fsdp2(mesh=init_device_mesh("cuda", (2, half), mesh_dim_names=("replicate", "shard")))


def tensor_parallel() -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    mesh = init_device_mesh("cuda", (dist.get_world_size(),))
    model = Model().cuda()
    for block in model.blocks:
        parallelize_module(block, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    # Some parameters are spread over the ranks and some are not, which no fused update takes.
    train(model, adam(model, foreach=False))


def pipeline() -> None:
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    rank, size = dist.get_rank(), dist.get_world_size()
    stage_model = nn.Sequential(*(Block() for _ in range(LAYERS))).cuda()
    stage = PipelineStage(stage_model, rank, size, torch.device("cuda"))
    schedule = Schedule1F1B(stage, n_microbatches=4, loss_fn=nn.functional.mse_loss)
    optimizer = adam(stage_model)
    for _ in range(STEPS):
        if rank == 0:
            schedule.step(batch())
        elif rank == size - 1:
            schedule.step(target=batch())
        else:
            schedule.step()
        optimizer.step()
        optimizer.zero_grad()


def experts() -> None:
    """One expert on each rank; the first gets more tokens than the others."""
    rank, size = dist.get_rank(), dist.get_world_size()
    expert, router = Block().cuda(), nn.Linear(WIDTH, size).cuda()
    optimizer = torch.optim.AdamW([*expert.parameters(), *router.parameters()], lr=1e-4)
    for _ in range(STEPS):
        tokens = torch.randn(TOKENS * 2, WIDTH, device="cuda")
        share = len(tokens) // (size + 1)
        counts = [len(tokens) - share * (size - 1), *[share] * (size - 1)]
        sent = torch.tensor(counts, device="cuda")
        received = torch.empty_like(sent)
        dist.all_to_all_single(received, sent)
        rows = received.tolist()
        theirs = torch.empty(sum(rows), WIDTH, device="cuda")
        dist.all_to_all_single(theirs, tokens, rows, counts)
        out = expert(theirs)
        loss = out.square().mean() + router(tokens).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if rank == 0:
            assert rows == [counts[0]] * size, rows


CASES: dict[str, Callable[[], None]] = {
    "ddp": ddp,
    "ddp-views": lambda: ddp(gradient_as_bucket_view=True),
    "ddp-buckets": lambda: ddp(bucket_cap_mb=1),
    "ddp-static": lambda: ddp(static_graph=True),
    "ddp-unused": lambda: ddp(find_unused_parameters=True),
    "ddp-accumulation": ddp_accumulation,
    "sync-batch-norm": sync_batch_norm,
    "zero": zero,
    "fsdp1": fsdp1,
    "fsdp1-bf16": fsdp1_bf16,
    "fsdp2": fsdp2,
    "fsdp2-bf16": fsdp2_bf16,
    "fsdp2-keep": lambda: fsdp2(reshard_after_forward=False),
    "fsdp2-meta": lambda: fsdp2(is_meta=True),
    "hsdp": hsdp,
    "tensor": tensor_parallel,
    "pipeline": pipeline,
    "experts": experts,
}


def main() -> None:
    # With several ranks on one real card, all of them use the first.
    local = 0 if os.environ.get("RANKS_SHARE_CARD") else int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    dist.init_process_group("nccl")
    torch.manual_seed(0)
    history = os.environ.get("RANKS_HISTORY")
    if history:
        torch.cuda.memory._record_memory_history(max_entries=1_000_000, stacks="python")
    CASES[sys.argv[1]]()
    torch.cuda.synchronize()
    figures = {
        "rank": dist.get_rank(),
        "allocated": torch.cuda.max_memory_allocated(),
        "reserved": torch.cuda.max_memory_reserved(),
        "allocations": torch.cuda.memory_stats()["allocation.all.allocated"],
    }
    print("figures " + json.dumps(figures), flush=True)
    if history:
        name = f"{sys.argv[1]}-{dist.get_rank()}.pickle"
        torch.cuda.memory._dump_snapshot(os.path.join(history, name))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
