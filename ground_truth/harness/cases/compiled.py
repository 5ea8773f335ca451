"""Models through `torch.compile` in its default mode."""

from __future__ import annotations

import dataclasses
from typing import Callable

import torch

from case import Job, case
from cases.attention import stack
from cases.optimizers import mlp
from cases.transformers_models import gpt2
from cases.vision import classifier
from context import Context


def compiled(build: Callable[[Context], Job]) -> Callable[[Context], Job]:
    def build_compiled(context: Context) -> Job:
        job = build(context)
        if context.tiny:
            # The self-check has no card to compile for; tracing alone finds mistakes.
            return dataclasses.replace(job, model=torch.compile(job.model, backend="eager"))
        return dataclasses.replace(job, model=torch.compile(job.model))

    return build_compiled


def _two_layers(model: torch.nn.Module) -> None:
    del model.transformer.h[2:]  # type: ignore[union-attr, operator]


case("mlp-compiled", compiled(mlp), rough_gib=4, rough_seconds=30)
case("mlp-compiled-bf16", compiled(mlp), precision="bf16", rough_gib=4, rough_seconds=30)
case(
    "attention-compiled-bf16", compiled(stack(64, causal=True)), precision="bf16", rough_seconds=40
)
case("gpt2-two-layers-compiled", compiled(gpt2(prepare=_two_layers)), rough_seconds=40)
case(
    "resnet18-compiled",
    compiled(classifier("resnet18", 64)),
    optimizer="sgd-momentum",
    rough_seconds=60,
)
