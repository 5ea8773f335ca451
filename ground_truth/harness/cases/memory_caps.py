"""Jobs under a memory cap: some only fit after the cache was given back, some do not fit.

Several caps per job, from comfortable to impossible, so that both kinds are among them whatever
the exact need.
"""

from __future__ import annotations

from typing import Any, Callable

import torch

from case import Job, case
from cases.allocator_settings import varying_images
from cases.optimizers import mlp
from cases.transformers_models import bert, gpt2, varying_bert, varying_gpt2
from cases.vision import classifier
from context import Context
from training import prepare, to_device

CAPS: dict[str, tuple[Callable[[Context], Job], dict[str, Any], tuple[float, ...]]] = {
    "bert": (bert(), {}, (5.22, 5.0, 3.5)),
    "gpt2": (gpt2(), {}, (8.7, 8.15, 7.0)),
    "gpt2-bf16": (gpt2(), {"precision": "bf16"}, (7.4, 6.0)),
    "gpt2-varying": (varying_gpt2, {"steps": 12}, (6.6, 6.4, 5.0)),
    "bert-varying": (varying_bert, {"steps": 12}, (6.9, 6.8, 5.0)),
    "resnet50": (classifier("resnet50", 64), {"optimizer": "sgd-momentum"}, (6.0, 5.8, 5.6, 4.0)),
    "vgg16": (classifier("vgg16", 32), {"optimizer": "sgd-momentum"}, (6.0, 5.0, 4.2, 4.0, 3.0)),
    "images-varying": (varying_images, {"steps": 12}, (2.2, 1.9, 1.0)),
    "mlp": (mlp, {}, (2.1, 2.06, 1.2)),
}
for name, (build, options, caps) in CAPS.items():
    for cap in caps:
        case(f"{name}-capped-at-{cap}-gib", build, cap_gib=cap, alone=True, **options)

case(
    "gpt2-capped-expandable-out-of-memory",
    gpt2(),
    cap_gib=7.0,
    settings="expandable_segments:True",
    alone=True,
)
case(
    "gpt2-varying-capped-split-limit",
    varying_gpt2,
    steps=12,
    cap_gib=7.5,
    settings="max_split_size_mb:128",
    alone=True,
)
case(
    "gpt2-varying-capped-collect-at-0.6",
    varying_gpt2,
    steps=12,
    cap_gib=9.0,
    settings="garbage_collection_threshold:0.6",
    alone=True,
)
case(
    "images-varying-tight-collect-at-0.8",
    varying_images,
    steps=12,
    cap_gib=3.0,
    settings="garbage_collection_threshold:0.8",
    alone=True,
)
case(
    "images-varying-tight-expandable",
    varying_images,
    steps=12,
    cap_gib=1.8,
    settings="expandable_segments:True",
    alone=True,
)
case(
    "gpt2-async-capped-out-of-memory",
    gpt2(),
    cap_gib=7.0,
    settings="backend:cudaMallocAsync",
    alone=True,
)


def halve_until_it_fits(context: Context) -> None:
    """A script that catches the error and continues with half the batch."""
    size = context.batch(64)
    job = classifier("resnet18", 2)(context)
    context.start()
    model = to_device(job.model, context)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for _ in range(context.steps):
        while True:
            try:
                images = torch.zeros(size, 3, context.pick(224, 64), context.pick(224, 64))
                batch = prepare((images, torch.zeros(size, dtype=torch.long)), context)
                job.loss(model, batch).backward()
                break
            except torch.OutOfMemoryError:
                optimizer.zero_grad()
                batch = None
            # Outside the handler, where the traceback no longer holds the failed step's tensors.
            torch.cuda.empty_cache()
            size //= 2
        optimizer.step()
        optimizer.zero_grad()
        context.step_done()


case("resnet18-halving-the-batch", script=halve_until_it_fits, cap_gib=1.0, alone=True)


def ask_for_too_much(context: Context) -> None:
    """One allocation larger than the card itself."""
    context.start()
    kept = torch.zeros(context.pick(1 << 30, 1 << 10), device=context.device)
    context.step_done()
    if context.device == "cuda":
        torch.zeros(200 << 30, dtype=torch.uint8, device=context.device)
    del kept


case("larger-than-the-card", script=ask_for_too_much, rough_gib=6, alone=True)
