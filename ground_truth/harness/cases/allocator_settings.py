"""The same jobs under PyTorch's allocator settings.

Batches change size from step to step: with equal steps most settings change nothing.
"""

from __future__ import annotations

from typing import Callable

import torch

from case import Job, case
from cases.transformers_models import gpt2, varying_bert, varying_gpt2
from cases.vision import classifier
from context import Context
from data import images, labels, varying


def varying_images(context: Context) -> Job:
    """ResNet-18 on images of changing size and batches of changing length."""
    job = classifier("resnet18", 16)(context)

    def make(step: int) -> tuple[torch.Tensor, torch.Tensor]:
        side = varying(step, context.pick(128, 32), context.pick(288, 64), 32)
        size = context.pick(varying(step + 1000, 8, 48), 2)
        return images(context, size, 3, side, side), labels(context, size, 1000)

    return Job(job.model, make, job.loss)


#: Each job with two caps near what it needs: one a little above, where collecting starts, and one
#: that expandable segments only just keep.
JOBS: dict[str, tuple[Callable[[Context], Job], float, float]] = {
    "gpt2-varying": (varying_gpt2, 8.0, 6.28),
    "bert-varying": (varying_bert, 7.5, 6.73),
    "images-varying": (varying_images, 5.0, 4.0),
}
#: The setting, and roughly how many GiB the jobs take under it: a low split limit keeps large
#: blocks whole, so that every new length needs new segments.
SETTINGS = {
    "expandable": ("expandable_segments:True", 8),
    "split-limit-128": ("max_split_size_mb:128", 20),
    "split-limit-32": ("max_split_size_mb:32", 38),
    "round-up-4": ("roundup_power2_divisions:4", 9),
    "async": ("backend:cudaMallocAsync", 8),
}
for job_name, (build, collecting_cap, tight_cap) in JOBS.items():
    for setting_name, (setting, rough_gib) in SETTINGS.items():
        case(
            f"{job_name}-{setting_name}",
            build,
            steps=12,
            settings=setting,
            rough_gib=rough_gib,
            rough_seconds=12,
            alone=setting_name in ("expandable", "async") and job_name == "gpt2-varying",
        )
    case(
        f"{job_name}-collect-at-0.8",
        build,
        steps=12,
        settings="garbage_collection_threshold:0.8",
        cap_gib=collecting_cap,
        rough_seconds=12,
    )
    case(
        f"{job_name}-expandable-capped",
        build,
        steps=12,
        settings="expandable_segments:True",
        cap_gib=tight_cap,
        rough_seconds=12,
    )

case("images-varying", varying_images, steps=20, rough_seconds=12)
case("resnet50-expandable", classifier("resnet50", 32), settings="expandable_segments:True")
case("resnet50-async", classifier("resnet50", 32), settings="backend:cudaMallocAsync")
case("gpt2-bf16-expandable", gpt2(), precision="bf16", settings="expandable_segments:True")
case("gpt2-async", gpt2(), settings="backend:cudaMallocAsync")
case("gpt2-large-segments", gpt2(batch=2), settings="large_segment_size_mb:64")
case(
    "gpt2-round-up-per-size",
    gpt2(batch=2),
    settings="roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
)
case(
    "resnet18-expandable-split-limit",
    classifier("resnet18", 32),
    settings="expandable_segments:True,max_split_size_mb:64",
)
