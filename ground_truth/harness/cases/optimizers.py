"""Every optimizer on the same wide MLP, where optimizer state is most of the memory."""

from __future__ import annotations

import torch
from torch import nn

from case import Job, case
from context import Context
from data import labels


def mlp(context: Context) -> Job:
    width, size = context.pick(4096, 32), context.batch(512)
    layers: list[nn.Module] = []
    for _ in range(6):
        layers += [nn.Linear(width, width), nn.ReLU(inplace=True), nn.Dropout(0.1)]
    model = nn.Sequential(*layers, nn.Linear(width, 1000))
    return Job(
        model,
        lambda step: (torch.zeros(size, width), labels(context, size, 1000)),
        lambda net, b: nn.functional.cross_entropy(net(b[0]), b[1]),
    )


NAMES = (
    "sgd",
    "sgd-momentum",
    "sgd-nesterov-decay",
    "sgd-for-loop",
    "sgd-fused",
    "adam",
    "adam-amsgrad",
    "adam-fused",
    "adamw-foreach",
    "adamw-fused",
    "adamw-for-loop",
    "adafactor",
    "adafactor-for-loop",
    "rmsprop",
    "rmsprop-centered-momentum",
    "adagrad",
    "nadam",
    "radam",
)
for name in NAMES:
    case(f"mlp-{name}", mlp, optimizer=name, rough_gib=4, alone=name in ("sgd", "adamw-foreach"))

case("mlp-fp16", mlp, precision="fp16", rough_gib=4)
case("mlp-bf16", mlp, precision="bf16", rough_gib=4)
case("mlp-pure-bf16", mlp, precision="pure-bf16", optimizer="adamw-fused", rough_gib=4)
case("mlp-accumulate-4-clipped", mlp, accumulate=4, clip_gradients=True, rough_gib=4)
case("mlp-gradients-zeroed-in-place", mlp, zero_gradients_in_place=True, rough_gib=4)


def train_with_average(context: Context) -> None:
    """An exponential moving average of the weights next to the model."""
    job = mlp(context)
    context.start()
    model = job.model.to(context.device)
    average = torch.optim.swa_utils.AveragedModel(
        model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.999)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    for step in range(context.steps):
        x, y = (value.to(context.device) for value in job.make_batch(step))
        job.loss(model, (x, y)).backward()
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        average.update_parameters(model)
        context.step_done()


def train_two_groups(context: Context) -> None:
    """Two parameter groups, half of the model frozen."""
    job = mlp(context)
    context.start()
    model = job.model.to(context.device)
    layers = [layer for layer in model if isinstance(layer, nn.Linear)]  # type: ignore[union-attr]
    for layer in layers[:3]:
        layer.requires_grad_(False)
    optimizer = torch.optim.AdamW(
        [
            {"params": [layer.weight for layer in layers[3:]], "weight_decay": 0.1},
            {"params": [layer.bias for layer in layers[3:]], "weight_decay": 0.0},
        ],
        lr=1e-4,
    )
    for step in range(context.steps):
        x, y = (value.to(context.device) for value in job.make_batch(step))
        job.loss(model, (x, y)).backward()
        optimizer.step()
        optimizer.zero_grad()
        context.step_done()


case("mlp-moving-average", script=train_with_average, rough_gib=5)
case("mlp-half-frozen-two-groups", script=train_two_groups, rough_gib=4)
