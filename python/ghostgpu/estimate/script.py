"""The job itself: a model, an optimizer, and a few training steps."""

from __future__ import annotations

import os
import sys
from typing import Any

from . import agent
from .failures import CannotEstimate, hide_tracebacks
from .options import Job, parse


def main() -> None:
    """Run the job that the arguments name."""
    # Nothing is ever downloaded.
    os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    # First, so that whatever is wrong can be told through the agent, which comes with torch.
    import torch

    hide_tracebacks(torch.cuda.OutOfMemoryError)
    job = parse(sys.argv[1:])
    from .sources import find_and_build

    run(torch, job, find_and_build(torch, job))


def run(torch: Any, job: Job, built: Any) -> None:
    """Train the model, or run inference."""
    model = built.model
    own_kind = {"pure-bf16": torch.bfloat16}.get(job.dtype)
    if job.lora is not None:
        from .lora import add_adapters

        model = add_adapters(torch, model, job.lora)
    if job.checkpointing:
        if built.enable_checkpointing is None:
            raise CannotEstimate(
                f"the library of {job.name} has no gradient checkpointing",
                "remove `--checkpointing`, or rehearse your own script with `ghostgpu run`",
            )
        built.enable_checkpointing()
    _tell(job, built, model)
    device = torch.device("cuda")
    if job.strategy is None:
        model = model.to(device)
    else:
        from .strategies import spread

        model = spread(torch, job, model)
    if job.inference:
        _use(torch, job, built, model, own_kind)
        return
    from .optimizers import make_optimizer

    model.train()
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = make_optimizer(torch, job.optimizer, trained)
    scaler = torch.amp.GradScaler("cuda") if job.dtype == "fp16" else None
    batch, seq = _sizes(job, built)
    for _ in range(max(job.steps, 1)):
        for _ in range(job.accumulate):
            inputs = _moved(torch, built.inputs(batch, seq), device, own_kind)
            with _autocast(torch, job):
                loss = built.loss(model, inputs)
                if job.accumulate > 1:
                    loss = loss / job.accumulate
            (loss if scaler is None else scaler.scale(loss)).backward()
        if scaler is None:
            optimizer.step()
        else:
            scaler.step(optimizer)
            scaler.update()
        optimizer.zero_grad()


def _use(torch: Any, job: Job, built: Any, model: Any, own_kind: Any) -> None:
    model.eval()
    batch, seq = _sizes(job, built)
    for _ in range(max(job.steps, 1)):
        inputs = _moved(torch, built.inputs(batch, seq), model_device(model), own_kind)
        with torch.no_grad(), _autocast(torch, job):
            built.outputs(model, inputs)


def model_device(model: Any) -> Any:
    """The device of a model."""
    return next(model.parameters()).device


def _sizes(job: Job, built: Any) -> tuple[int, int | None]:
    place = f"the batch of {job.name}"
    sizes = agent.other_sizes(place, job.batch, built.seq, built.longest_seq)
    seq = sizes.get("seq", built.seq)
    return int(sizes.get("batch", job.batch)), None if seq is None else int(seq)


def _autocast(torch: Any, job: Job) -> Any:
    kind = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(job.dtype)
    if job.strategy == "fsdp2" and job.dtype == "bf16":
        kind = None  # its own mixed precision
    return torch.autocast("cuda", kind, enabled=kind is not None)


def _moved(torch: Any, inputs: dict[str, Any], device: Any, own_kind: Any) -> dict[str, Any]:
    """The batch on the card; images in the model's own precision if that is not single."""
    moved = {}
    for name, value in inputs.items():
        if own_kind is not None and value.is_floating_point():
            value = value.to(own_kind)
        moved[name] = value.to(device)
    return moved


def _tell(job: Job, built: Any, model: Any) -> None:
    if job.strategy is not None and os.environ["RANK"] != "0":
        return  # once is enough
    parameters = list(model.parameters())
    count = sum(parameter.numel() for parameter in parameters)
    trained = sum(parameter.numel() for parameter in parameters if parameter.requires_grad)
    size = f"{count:,} parameters"
    if trained != count:
        size += f", {trained:,} of them trained"
    kinds = {
        "fp32": "in fp32",
        "fp16": "in fp32 with fp16 autocast and a gradient scaler",
        "bf16": "in fp32 with bf16 autocast",
        "pure-bf16": "all in bf16",
    }
    print(f"model          {job.name}: {built.kind}, {size}, {built.source}")
    how = "inference" if job.inference else f"training with {job.optimizer}"
    parts = [f"{built.task}, {how} {kinds[job.dtype]}", f"batch {job.batch}, {built.sample} each"]
    if job.accumulate > 1:
        parts.append(f"{job.accumulate} batches for a step")
    if job.checkpointing:
        parts.append("gradient checkpointing")
    if job.strategy is not None:
        parts.append(f"{job.strategy} on {os.environ['WORLD_SIZE']} cards")
    print(f"job            {'; '.join(parts)}", flush=True)
