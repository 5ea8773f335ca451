"""Parameters are shared out among the ranks: FSDP1, FSDP2 and HSDP."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable

import torch
import torch.distributed as dist
from small_model import STEPS, Block, CheckpointedModel, Model, adam, batch, train
from torch import nn


def wrapped1(model: nn.Module, **options: Any) -> Any:
    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy

    policy = partial(transformer_auto_wrap_policy, transformer_layer_cls={Block})
    options = {"use_orig_params": True, "device_id": torch.cuda.current_device(), **options}
    return FullyShardedDataParallel(model, auto_wrap_policy=policy, **options)


def fsdp1(model: Callable[[], nn.Module] = Model, **options: Any) -> None:
    sharded = wrapped1(model().cuda(), **options)
    train(sharded, adam(sharded))


def fsdp1_with(**names: str) -> None:
    """Options whose values are members of enumerations of FSDP's, by their names."""
    from torch.distributed import fsdp

    kinds = {"sharding_strategy": fsdp.ShardingStrategy, "backward_prefetch": fsdp.BackwardPrefetch}
    fsdp1(**{option: kinds[option][name] for option, name in names.items()})


def fsdp1_bf16() -> None:
    from torch.distributed.fsdp import MixedPrecision

    kind = torch.bfloat16
    fsdp1(mixed_precision=MixedPrecision(param_dtype=kind, reduce_dtype=kind, buffer_dtype=kind))


def fsdp1_offload() -> None:
    from torch.distributed.fsdp import CPUOffload

    fsdp1(cpu_offload=CPUOffload(offload_params=True))


def fsdp1_clip() -> None:
    model = wrapped1(Model().cuda())
    train(model, adam(model), before_step=lambda: model.clip_grad_norm_(1.0))


def fsdp1_accumulation() -> None:
    model = wrapped1(Model().cuda())
    optimizer = adam(model)
    for _ in range(STEPS):
        with model.no_sync():
            model(batch()).square().mean().backward()
        model(batch()).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def fsdp1_meta() -> None:
    def materialise(module: nn.Module) -> None:
        module.to_empty(device=torch.device("cuda"), recurse=False)

    with torch.device("meta"):
        model = Model()
    sharded = wrapped1(model, param_init_fn=materialise)
    train(sharded, adam(sharded))


def fsdp1_hybrid() -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import ShardingStrategy

    mesh = init_device_mesh("cuda", (2, dist.get_world_size() // 2))
    fsdp1(sharding_strategy=ShardingStrategy.HYBRID_SHARD, device_mesh=mesh)


def fsdp1_state() -> None:
    """A training that ends with the whole state in one place."""
    from torch.distributed.fsdp import FullStateDictConfig, FullyShardedDataParallel, StateDictType

    model = wrapped1(Model().cuda())
    train(model, adam(model))
    config = FullStateDictConfig(offload_to_cpu=True, rank0_only=True)
    with FullyShardedDataParallel.state_dict_type(model, StateDictType.FULL_STATE_DICT, config):
        model.state_dict()


def wrapped2(model: Any, **options: Any) -> Any:
    from torch.distributed.fsdp import fully_shard

    for block in model.blocks:
        fully_shard(block, **options)
    return fully_shard(model, **options)


def fsdp2(model: Callable[[], nn.Module] = Model, **options: Any) -> None:
    sharded = wrapped2(model().cuda(), **options)
    train(sharded, adam(sharded))


def fsdp2_meta(**options: Any) -> None:
    with torch.device("meta"):
        model = Model()
    sharded = wrapped2(model, **options)
    sharded.to_empty(device="cuda")
    train(sharded, adam(sharded))


def fsdp2_mixed(reduced: torch.dtype, **options: Any) -> None:
    from torch.distributed.fsdp import MixedPrecisionPolicy

    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=reduced)
    fsdp2(mp_policy=policy, **options)


def fsdp2_offload() -> None:
    from torch.distributed.fsdp import CPUOffloadPolicy

    # Parameters are on the host, where there is no communication of theirs but through the card.
    model = wrapped2(Model(), offload_policy=CPUOffloadPolicy())
    train(model, adam(model))


def fsdp2_prefetch() -> None:
    model = wrapped2(Model().cuda())
    blocks = list(model.blocks)
    for at, block in enumerate(blocks):
        block.set_modules_to_forward_prefetch(blocks[at + 1 : at + 3])
        block.set_modules_to_backward_prefetch(blocks[max(at - 2, 0) : at][::-1])
    train(model, adam(model))


def fsdp2_accumulation(resharded: bool = True) -> None:
    model = wrapped2(Model().cuda())
    optimizer = adam(model)
    for _ in range(STEPS):
        for is_last in (False, True):
            model.set_requires_gradient_sync(is_last)
            model.set_reshard_after_backward(resharded or is_last)
            model(batch()).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def fsdp2_clip() -> None:
    model = wrapped2(Model().cuda())
    clip = nn.utils.clip_grad_norm_
    train(model, adam(model), before_step=lambda: clip(model.parameters(), 1.0))


def fsdp2_uneven() -> None:
    """A width that four ranks cannot share evenly."""
    model = wrapped2(Model(width=510).cuda())
    train(model, adam(model), lambda: batch(510))


def fsdp2_state() -> None:
    """A training that ends with the whole state in one place."""
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict

    model = wrapped2(Model().cuda())
    optimizer = adam(model)
    train(model, optimizer)
    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    get_state_dict(model, optimizer, options=options)


def hsdp(**options: Any) -> None:
    from torch.distributed.device_mesh import init_device_mesh

    half = dist.get_world_size() // 2
    mesh = init_device_mesh("cuda", (2, half), mesh_dim_names=("replicate", "shard"))
    if options:
        fsdp2_mixed(torch.float32, mesh=mesh, **options)
    else:
        fsdp2(mesh=mesh)


CASES: dict[str, Callable[[], None]] = {
    "fsdp1": fsdp1,
    "fsdp1-4": fsdp1,
    "fsdp1-bf16": fsdp1_bf16,
    "fsdp1-grad-op": lambda: fsdp1_with(sharding_strategy="SHARD_GRAD_OP"),
    "fsdp1-no-shard": lambda: fsdp1_with(sharding_strategy="NO_SHARD"),
    "fsdp1-late-prefetch": lambda: fsdp1_with(backward_prefetch="BACKWARD_POST"),
    "fsdp1-forward-prefetch": lambda: fsdp1(forward_prefetch=True),
    "fsdp1-no-limit": lambda: fsdp1(limit_all_gathers=False),
    "fsdp1-flat": lambda: fsdp1(use_orig_params=False),
    "fsdp1-checkpointing": lambda: fsdp1(CheckpointedModel),
    "fsdp1-offload": fsdp1_offload,
    "fsdp1-clip": fsdp1_clip,
    "fsdp1-accumulation": fsdp1_accumulation,
    "fsdp1-meta": fsdp1_meta,
    "fsdp1-hybrid-4": fsdp1_hybrid,
    "fsdp1-state": fsdp1_state,
    "fsdp2": fsdp2,
    "fsdp2-4": fsdp2,
    "fsdp2-bf16": lambda: fsdp2_mixed(torch.float32),
    "fsdp2-bf16-reduced": lambda: fsdp2_mixed(torch.bfloat16),
    "fsdp2-bf16-keep": lambda: fsdp2_mixed(torch.float32, reshard_after_forward=False),
    "fsdp2-keep": lambda: fsdp2(reshard_after_forward=False),
    "fsdp2-reshard-to-2-4": lambda: fsdp2(reshard_after_forward=2),
    "fsdp2-meta": fsdp2_meta,
    "fsdp2-checkpointing": lambda: fsdp2(CheckpointedModel),
    "fsdp2-offload": fsdp2_offload,
    "fsdp2-prefetch": fsdp2_prefetch,
    "fsdp2-accumulation": fsdp2_accumulation,
    "fsdp2-accumulation-gathered": lambda: fsdp2_accumulation(resharded=False),
    "fsdp2-clip": fsdp2_clip,
    "fsdp2-uneven-4": fsdp2_uneven,
    "fsdp2-state": fsdp2_state,
    "hsdp": hsdp,
    "hsdp-bf16-keep-4": lambda: hsdp(reshard_after_forward=False),
}
