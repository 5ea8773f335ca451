"""Models that only answer: with and without gradients, and text generated token by token."""

from __future__ import annotations

import contextlib
from typing import Any, Callable

import torch

from case import Job, case
from cases.transformers_models import gpt2
from cases.vision import classifier
from context import Context
from training import prepare, to_device


def evaluate(build: Callable[[Context], Job], mode: str) -> Callable[[Context], None]:
    def run(context: Context) -> None:
        job = build(context)
        context.start()
        model = to_device(job.model, context).eval()
        without: dict[str, Callable[[], Any]] = {
            "plain": contextlib.nullcontext,
            "no-grad": torch.no_grad,
            "inference": torch.inference_mode,
        }
        for step in range(context.steps):
            with without[mode](), context.autocast():
                loss = job.loss(model, prepare(job.make_batch(step), context))
            loss.item()
            context.step_done()

    return run


RESNET = classifier("resnet50", 64)
for mode in ("plain", "no-grad", "inference"):
    case(f"resnet50-evaluation-{mode}", script=evaluate(RESNET, mode))
    case(f"gpt2-evaluation-{mode}", script=evaluate(gpt2(), mode), rough_gib=8)
case(
    "resnet50-evaluation-no-grad-fp16-channels-last",
    script=evaluate(RESNET, "no-grad"),
    precision="fp16",
    channels_last=True,
)
case("gpt2-evaluation-no-grad-bf16", script=evaluate(gpt2(), "no-grad"), precision="bf16")
case(
    "gpt2-evaluation-pure-bf16",
    script=evaluate(gpt2(), "inference"),
    precision="pure-bf16",
    alone=True,
)
case("vit-b-16-evaluation-no-grad", script=evaluate(classifier("vit_b_16", 64), "no-grad"))
case("vgg16-evaluation-no-grad", script=evaluate(classifier("vgg16", 32), "no-grad"))


def train_and_validate(context: Context) -> None:
    """Epochs of two training steps and two validation batches of twice the size."""
    job = classifier("resnet18", 32)(context)
    larger = classifier("resnet18", 64)(context)
    context.start()
    model = to_device(job.model, context)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for _ in range(context.steps):
        model.train()
        for step in range(2):
            loss = job.loss(model, prepare(job.make_batch(step), context))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for step in range(2):
                job.loss(model, prepare(larger.make_batch(step), context)).item()
        context.step_done()


def generate(context: Context) -> None:
    """Greedy text with a growing cache; the end token is off, so the length is fixed."""
    job = gpt2()(context)
    context.start()
    model: Any = to_device(job.model, context).eval()
    ids = torch.zeros(
        context.batch(16), context.pick(64, 4), dtype=torch.long, device=context.device
    )
    for _ in range(context.steps):
        model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=context.pick(48, 3),
            do_sample=False,
            eos_token_id=None,
            pad_token_id=0,
        )
        context.step_done()


case("resnet18-train-and-validate", script=train_and_validate)
case("gpt2-generate", script=generate, rough_seconds=12)
case("gpt2-generate-pure-bf16", script=generate, precision="pure-bf16", rough_seconds=12)
