"""Every rank has the whole model: `DistributedDataParallel`, optimizers that share their state."""

from __future__ import annotations

import time
from typing import Any, Callable

import torch
from small_model import STEPS, Block, CheckpointedModel, Model, adam, batch, train
from torch import nn


def wrapped(model: nn.Module, **options: Any) -> nn.parallel.DistributedDataParallel:
    device = torch.cuda.current_device()
    return nn.parallel.DistributedDataParallel(model.cuda(), device_ids=[device], **options)


def ddp(**options: Any) -> None:
    model = wrapped(Model(), **options)
    train(model, adam(model))


def paused(**options: Any) -> None:
    """Steps that are longer than the tenth of a second after which NCCL's watchdog looks again."""
    model = wrapped(Model(), **options)

    def inputs() -> torch.Tensor:
        torch.cuda.synchronize()
        time.sleep(0.4)
        return batch()

    train(model, adam(model), inputs)


def accumulation(**options: Any) -> None:
    model = wrapped(Model(), **options)
    optimizer = adam(model)
    for _ in range(STEPS):
        with model.no_sync():
            model(batch()).square().mean().backward()
        model(batch()).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


class Branches(nn.Module):
    """Two layers of which a pass uses one."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.head = Block(), Block(), nn.Linear(512, 512)
        self.passes = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.passes += 1
        return self.head((self.first if self.passes % 2 else self.second)(x))


def unused_branch() -> None:
    model = wrapped(Branches(), find_unused_parameters=True)
    train(model, adam(model))


def checkpointing(**options: Any) -> None:
    model = wrapped(CheckpointedModel(), **options)
    train(model, adam(model))


def compressed_gradients() -> None:
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook

    model = wrapped(Model())
    model.register_comm_hook(None, bf16_compress_hook)
    train(model, adam(model))


def low_rank_gradients() -> None:
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

    model = wrapped(Model())
    state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=4, start_powerSGD_iter=2)
    model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    train(model, adam(model))


def autocast() -> None:
    model = wrapped(Model())
    optimizer = adam(model)
    for _ in range(STEPS):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(batch()).float().square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def clipping(**options: Any) -> None:
    model = wrapped(Model(), **options)
    clip = nn.utils.clip_grad_norm_
    train(model, adam(model), before_step=lambda: clip(model.parameters(), 1.0))


def kept_gradients(**options: Any) -> None:
    model = wrapped(Model(), **options)
    train(model, adam(model), set_to_none=False)


def uneven_inputs() -> None:
    """The second rank has fewer batches than the first."""
    from torch.distributed import get_rank

    model = wrapped(Model())
    optimizer = adam(model)
    with model.join():
        for _ in range(STEPS - get_rank()):
            model(batch()).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()


def images(convert: Callable[[nn.Module], nn.Module]) -> None:
    """A small convolutional net, whose batch norms have buffers."""
    plain = nn.Sequential(
        nn.Conv2d(3, 32, 3), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 8, 3)
    ).cuda()
    model = wrapped(convert(plain))
    train(model, adam(model), lambda: torch.randn(8, 3, 64, 64, device="cuda"))


def zero(views: bool = False, **options: Any) -> None:
    from torch.distributed.optim import ZeroRedundancyOptimizer

    model = wrapped(Model(), gradient_as_bucket_view=views)
    optimizer = ZeroRedundancyOptimizer(
        model.parameters(), optimizer_class=torch.optim.AdamW, lr=1e-4, **options
    )
    train(model, optimizer)


CASES: dict[str, Callable[[], None]] = {
    "ddp": ddp,
    "ddp-views": lambda: ddp(gradient_as_bucket_view=True),
    "ddp-buckets": lambda: ddp(bucket_cap_mb=1),
    "ddp-large-bucket": lambda: ddp(bucket_cap_mb=100),
    "ddp-static": lambda: ddp(static_graph=True),
    "ddp-unused": lambda: ddp(find_unused_parameters=True),
    "ddp-unused-branch": unused_branch,
    "ddp-accumulation": accumulation,
    "ddp-views-accumulation": lambda: accumulation(gradient_as_bucket_view=True),
    "ddp-views-buckets": lambda: ddp(gradient_as_bucket_view=True, bucket_cap_mb=5),
    "ddp-views-kept": lambda: kept_gradients(gradient_as_bucket_view=True),
    "ddp-kept": kept_gradients,
    "ddp-paused": paused,
    "ddp-views-paused": lambda: paused(gradient_as_bucket_view=True),
    "ddp-static-paused": lambda: paused(static_graph=True),
    "ddp-checkpointing": lambda: checkpointing(static_graph=True),
    "ddp-bf16-hook": compressed_gradients,
    "ddp-power-sgd": low_rank_gradients,
    "ddp-autocast": autocast,
    "ddp-clip": lambda: clipping(bucket_cap_mb=1),
    "ddp-join": uneven_inputs,
    "ddp-buffers": lambda: images(lambda model: model),
    "ddp-4": ddp,
    "ddp-views-4": lambda: ddp(gradient_as_bucket_view=True),
    "sync-batch-norm": lambda: images(nn.SyncBatchNorm.convert_sync_batchnorm),
    "sync-batch-norm-4": lambda: images(nn.SyncBatchNorm.convert_sync_batchnorm),
    "zero": zero,
    "zero-4": zero,
    "zero-views": lambda: zero(views=True),
    "zero-parameter-views": lambda: zero(parameters_as_bucket_view=True),
}
