"""Ranks have parts of a model or of its input: tensor, pipeline, expert and context parallel."""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.distributed as dist
from small_model import BATCH, LAYERS, STEPS, TOKENS, WIDTH, Block, Model, adam, batch, train
from torch import nn


def split_in_width(model: Any, mesh: Any, is_sequence_split: bool = False) -> Any:
    """The two products of every layer, by columns and by rows."""
    from torch.distributed.tensor import Shard
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        PrepareModuleInput,
        RowwiseParallel,
        SequenceParallel,
        parallelize_module,
    )

    plan: dict[str, Any] = {"up": ColwiseParallel(), "down": RowwiseParallel()}
    if is_sequence_split:
        plan = {
            "norm": SequenceParallel(),
            "up": ColwiseParallel(input_layouts=Shard(1)),
            "down": RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
        }
    for at, block in enumerate(model.blocks):
        parallelize_module(block, mesh, plan)
        if is_sequence_split and at == 0:
            parallelize_module(
                block,
                mesh,
                PrepareModuleInput(
                    input_layouts=Shard(1), desired_input_layouts=Shard(1), use_local_output=False
                ),
            )
    return model


def tensor(is_sequence_split: bool = False) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor

    mesh = init_device_mesh("cuda", (dist.get_world_size(),))
    model = split_in_width(Model().cuda(), mesh, is_sequence_split)

    class Local(nn.Module):
        """What the loop sees: the part of the last layer's output that this rank has."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = x.chunk(mesh.size(), 1)[mesh.get_local_rank()] if is_sequence_split else x
            for block in self.model.blocks:
                x = block(x)
            return self.model.head(x.to_local() if isinstance(x, DTensor) else x)

    # Some parameters are spread over the ranks and some are not, which no fused update takes.
    whole = Local() if is_sequence_split else model
    train(whole, adam(whole, foreach=False))


def tensor_in_shards() -> None:
    """Tensor parallel between neighbours, FSDP2 across."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cuda", (dist.get_world_size() // 2, 2), mesh_dim_names=("dp", "tp"))
    model = split_in_width(Model().cuda(), mesh["tp"])
    for block in model.blocks:
        fully_shard(block, mesh=mesh["dp"])
    fully_shard(model, mesh=mesh["dp"])
    train(model, adam(model, foreach=False))


def run_pipeline(schedule: Any, model: nn.Module, group: Any = None) -> None:
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    optimizer = adam(model)
    for _ in range(STEPS):
        if rank == 0:
            schedule.step(batch())
        elif rank == size - 1:
            schedule.step(target=batch())
        else:
            schedule.step()
        optimizer.step()
        optimizer.zero_grad()


def pipeline(name: str) -> None:
    """One stage a rank."""
    from torch.distributed import pipelining

    model = nn.Sequential(*(Block() for _ in range(LAYERS))).cuda()
    place = (dist.get_rank(), dist.get_world_size(), torch.device("cuda"))
    stage = pipelining.PipelineStage(model, *place)
    schedule = getattr(pipelining, name)(stage, n_microbatches=4, loss_fn=nn.functional.mse_loss)
    run_pipeline(schedule, model)


def interleaved_pipeline(name: str) -> None:
    """Two stages a rank."""
    from torch.distributed import pipelining

    rank, size = dist.get_rank(), dist.get_world_size()
    parts = nn.ModuleList(nn.Sequential(Block(), Block()) for _ in range(2)).cuda()
    stages = [
        pipelining.PipelineStage(part, rank + size * at, 2 * size, torch.device("cuda"))
        for at, part in enumerate(parts)
    ]
    schedule = getattr(pipelining, name)(stages, n_microbatches=4, loss_fn=nn.functional.mse_loss)
    run_pipeline(schedule, parts)


def pipeline_in_shards() -> None:
    """Stages of two ranks, whose parameters FSDP2 shares between them."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    mesh = init_device_mesh("cuda", (2, dist.get_world_size() // 2), mesh_dim_names=("pp", "dp"))
    model = nn.Sequential(*(Block() for _ in range(LAYERS))).cuda()
    for block in model:
        fully_shard(block, mesh=mesh["dp"])
    fully_shard(model, mesh=mesh["dp"])
    group = mesh["pp"].get_group()
    place = (mesh["pp"].get_local_rank(), 2, torch.device("cuda"))
    stage = PipelineStage(model, *place, group=group)
    schedule = Schedule1F1B(stage, n_microbatches=4, loss_fn=nn.functional.mse_loss)
    run_pipeline(schedule, model, group)


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


def experts_there_and_back() -> None:
    """Tokens go to their experts and come back, with gradients on both ways."""
    from torch.distributed.nn.functional import all_to_all_single

    rank, size = dist.get_rank(), dist.get_world_size()
    dense, expert = Block().cuda(), Block().cuda()
    optimizer = torch.optim.AdamW([*dense.parameters(), *expert.parameters()], lr=1e-4)
    for step in range(STEPS):
        tokens = dense(torch.randn(TOKENS * 2, WIDTH, device="cuda"))
        counts = [len(tokens) // size + 8 * (step + 1) * (1 if at == 0 else -1) for at in range(2)]
        counts += [len(tokens) // size] * (size - 2)
        sent = torch.tensor(counts, device="cuda")
        received = torch.empty_like(sent)
        dist.all_to_all_single(received, sent)
        rows = received.tolist()
        theirs = torch.empty(sum(rows), WIDTH, device="cuda")
        theirs = expert(all_to_all_single(theirs, tokens, rows, counts))
        back = all_to_all_single(torch.empty_like(tokens), theirs, counts, rows)
        (tokens + back).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        assert rows == [counts[rank]] * size, rows


class Attention(nn.Module):
    """Attention in bf16, which PyTorch's ring passes around."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        heads = self.qkv(x).view(*x.shape[:2], 3, 8, WIDTH // 8).permute(2, 0, 3, 1, 4)
        out = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        return x + self.out(out.transpose(1, 2).flatten(2))


def context(rotation: str) -> None:
    """Every rank has a part of every sequence."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.experimental import context_parallel
    from torch.distributed.tensor.experimental._attention import set_rotate_method
    from torch.nn.attention import SDPBackend, sdpa_kernel

    mesh = init_device_mesh("cuda", (dist.get_world_size(),))
    set_rotate_method(rotation)
    model = nn.Sequential(Attention(), Block(), Attention(), Block()).cuda().bfloat16()
    optimizer = adam(model)
    for _ in range(STEPS):
        x = torch.randn(BATCH, 4 * TOKENS, WIDTH, device="cuda", dtype=torch.bfloat16)
        shared = context_parallel(mesh, buffers=[x], buffer_seq_dims=[1], no_restore_buffers={x})
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION), shared:
            model(x).float().square().mean().backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()
        optimizer.zero_grad()


CASES: dict[str, Callable[[], None]] = {
    "tensor": tensor,
    "tensor-4": tensor,
    "tensor-sequence": lambda: tensor(is_sequence_split=True),
    "tensor-fsdp2-4": tensor_in_shards,
    "pipeline": lambda: pipeline("Schedule1F1B"),
    "pipeline-4": lambda: pipeline("Schedule1F1B"),
    "pipeline-gpipe": lambda: pipeline("ScheduleGPipe"),
    "pipeline-gpipe-4": lambda: pipeline("ScheduleGPipe"),
    "pipeline-interleaved": lambda: interleaved_pipeline("ScheduleInterleaved1F1B"),
    "pipeline-zero-bubble": lambda: interleaved_pipeline("ScheduleInterleavedZeroBubble"),
    "pipeline-fsdp2-4": pipeline_in_shards,
    "experts": experts,
    "experts-4": experts,
    "experts-there-and-back": experts_there_and_back,
    "experts-there-and-back-4": experts_there_and_back,
    "context-gather": lambda: context("allgather"),
    "context-ring": lambda: context("alltoall"),
    "context-ring-4": lambda: context("alltoall"),
}
