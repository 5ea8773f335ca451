"""Training on several cards: how a model is spread over them."""

from __future__ import annotations

import os
from typing import Any, Iterator

from .options import Job


def spread(torch: Any, job: Job, model: Any) -> Any:
    """The model on this rank's card, as the job's strategy has it."""
    card = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(card)
    torch.distributed.init_process_group("nccl", device_id=card)
    if job.strategy == "ddp":
        from torch.nn.parallel import DistributedDataParallel

        return DistributedDataParallel(model.to(card), device_ids=[card.index])
    return _shared_out(torch, job, model, card)


def _shared_out(torch: Any, job: Job, model: Any, card: Any) -> Any:
    """FSDP2, block by block, from a model without memory: a large one fits no card as a whole."""
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    is_mixed = job.dtype == "bf16"
    half = torch.bfloat16 if is_mixed else None
    policy = MixedPrecisionPolicy(
        param_dtype=half, reduce_dtype=torch.float32 if is_mixed else None
    )
    model = model.to("meta")
    # Parameters that two modules have are two when they were moved.
    if hasattr(model, "tie_weights"):
        model.tie_weights()
    for block in _blocks(torch, model):
        fully_shard(block, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
    return model.to_empty(device=card)


def _blocks(torch: Any, module: Any) -> Iterator[Any]:
    """What stands in lists of modules and has parameters; nothing inside of another."""
    lists = (torch.nn.ModuleList, torch.nn.Sequential)
    for child in module.children():
        is_listed = isinstance(module, lists) and next(child.parameters(), None) is not None
        if is_listed and not isinstance(child, torch.nn.ModuleList):
            yield child
        else:
            yield from _blocks(torch, child)
