"""Optimizers by the names cases use."""

from __future__ import annotations

from typing import Any, Callable, Iterable

import torch

Maker = Callable[[Iterable[torch.nn.Parameter]], torch.optim.Optimizer]


def _with(kind: Any, lr: float, **options: Any) -> Maker:
    return lambda parameters: kind(parameters, lr=lr, **options)


def _transformers_adafactor(parameters: Iterable[torch.nn.Parameter]) -> torch.optim.Optimizer:
    from transformers.optimization import Adafactor

    return Adafactor(parameters, lr=1e-4, relative_step=False, scale_parameter=False)


OPTIMIZERS: dict[str, Maker] = {
    "sgd": _with(torch.optim.SGD, 1e-3),
    "sgd-momentum": _with(torch.optim.SGD, 1e-3, momentum=0.9),
    "sgd-nesterov-decay": _with(
        torch.optim.SGD, 1e-3, momentum=0.9, nesterov=True, weight_decay=1e-4
    ),
    "sgd-for-loop": _with(torch.optim.SGD, 1e-3, momentum=0.9, foreach=False),
    "sgd-fused": _with(torch.optim.SGD, 1e-3, momentum=0.9, fused=True),
    "adam": _with(torch.optim.Adam, 1e-4),
    "adam-amsgrad": _with(torch.optim.Adam, 1e-4, amsgrad=True),
    "adam-fused": _with(torch.optim.Adam, 1e-4, fused=True),
    "adamw": _with(torch.optim.AdamW, 1e-4),
    "adamw-foreach": _with(torch.optim.AdamW, 1e-4, foreach=True),
    "adamw-fused": _with(torch.optim.AdamW, 1e-4, fused=True),
    "adamw-for-loop": _with(torch.optim.AdamW, 1e-4, foreach=False),
    "adamw-capturable": _with(torch.optim.AdamW, 1e-4, capturable=True),
    "adafactor": _with(torch.optim.Adafactor, 1e-4),
    "adafactor-for-loop": _with(torch.optim.Adafactor, 1e-4, foreach=False),
    "transformers-adafactor": _transformers_adafactor,
    "rmsprop": _with(torch.optim.RMSprop, 1e-4),
    "rmsprop-centered-momentum": _with(torch.optim.RMSprop, 1e-4, centered=True, momentum=0.9),
    "adagrad": _with(torch.optim.Adagrad, 1e-4),
    "adadelta": _with(torch.optim.Adadelta, 1e-4),
    "adamax": _with(torch.optim.Adamax, 1e-4),
    "nadam": _with(torch.optim.NAdam, 1e-4),
    "radam": _with(torch.optim.RAdam, 1e-4),
    "asgd": _with(torch.optim.ASGD, 1e-4),
    "rprop": _with(torch.optim.Rprop, 1e-4),
}
