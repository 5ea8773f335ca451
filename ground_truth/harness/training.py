"""The usual training loop, for every case that only differs in what it trains and how."""

from __future__ import annotations

from typing import Any

import torch

from case import Job
from context import Context
from optimizers import OPTIMIZERS


def train(context: Context) -> None:
    case = context.case
    assert case.build is not None
    job = case.build(context)
    context.start()
    model = to_device(job.model, context)
    model.train()
    optimizer = OPTIMIZERS[case.optimizer](model.parameters())
    scaler = context.scaler()
    for step in range(context.steps):
        one_step(context, job, model, optimizer, scaler, step)
        context.step_done()


def to_device(model: torch.nn.Module, context: Context) -> torch.nn.Module:
    if context.case.precision == "pure-bf16":
        model = model.to(torch.bfloat16)
    if context.case.channels_last:
        model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return model.to(context.device)


def one_step(
    context: Context,
    job: Job,
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    step: int,
) -> None:
    """One optimizer step, written the way most scripts write it."""
    case = context.case
    for part in range(case.accumulate):
        batch = prepare(job.make_batch(step * case.accumulate + part), context)
        with context.autocast():
            loss = job.loss(model, batch)
        scaler.scale(loss / case.accumulate).backward()
    if case.clip_gradients:
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=not case.zero_gradients_in_place)
    loss.item()


def prepare(batch: Any, context: Context) -> Any:
    """The batch on the device, in the precision and layout of the case."""
    if isinstance(batch, dict):
        return {name: prepare(value, context) for name, value in batch.items()}
    if isinstance(batch, (list, tuple)):
        return type(batch)(prepare(value, context) for value in batch)
    if not isinstance(batch, torch.Tensor):
        return batch
    batch = batch.to(context.device)
    if batch.is_floating_point() and context.case.precision == "pure-bf16":
        batch = batch.to(torch.bfloat16)
    if context.case.channels_last and batch.dim() == 4:
        batch = batch.to(memory_format=torch.channels_last)
    return batch
