"""Optimizers by the names people use, from the user's own torch."""

from __future__ import annotations

from typing import Any, Callable

from .failures import CannotEstimate

Make = Callable[[Any, Any], Any]


def _make(name: str, **options: Any) -> Make:
    def make(torch: Any, parameters: Any) -> Any:
        kind = getattr(torch.optim, name, None)
        if kind is None:
            raise CannotEstimate(
                f"torch {torch.__version__} has no optimizer {name}",
                "newer releases of torch have it; `--python PATH` names another python",
            )
        return kind(parameters, **options)

    return make


OPTIMIZERS: dict[str, Make] = {
    "sgd": _make("SGD", lr=0.01),
    "sgd-momentum": _make("SGD", lr=0.01, momentum=0.9),
    "sgd-nesterov": _make("SGD", lr=0.01, momentum=0.9, nesterov=True),
    "adam": _make("Adam", lr=1e-4),
    "adam-fused": _make("Adam", lr=1e-4, fused=True),
    "adamw": _make("AdamW", lr=1e-4),
    "adamw-fused": _make("AdamW", lr=1e-4, fused=True),
    "adamw-for-loop": _make("AdamW", lr=1e-4, foreach=False),
    "adamax": _make("Adamax", lr=1e-4),
    "nadam": _make("NAdam", lr=1e-4),
    "radam": _make("RAdam", lr=1e-4),
    "adagrad": _make("Adagrad", lr=1e-4),
    "adadelta": _make("Adadelta", lr=1e-4),
    "rmsprop": _make("RMSprop", lr=1e-4),
    "rmsprop-momentum": _make("RMSprop", lr=1e-4, momentum=0.9),
    "adafactor": _make("Adafactor", lr=1e-4),
}


def make_optimizer(torch: Any, name: str, parameters: Any) -> Any:
    """The optimizer of that name for these parameters."""
    return OPTIMIZERS[name](torch, parameters)
