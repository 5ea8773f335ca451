"""What one measured training job is, and the table of all of them.

A case is data: what to build, how to train it, under which allocator settings. The two loops
that use it are `training.py` (the usual one) and the case's own `script` where the loop itself is
what is measured (two optimizers, a framework's trainer, evaluation only).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable

if TYPE_CHECKING:
    import torch

    from context import Context

#: fp16 means autocast and GradScaler, bf16 means autocast; pure-bf16 has bf16 weights too.
PRECISIONS = ("fp32", "fp16", "bf16", "pure-bf16")

#: What PyTorch says when the workspace of every convolution algorithm was refused: memory ran out,
#: though the error is not an out-of-memory error.
NO_ENGINE = "unable to find an engine to execute this computation"
SETTINGS_VARIABLE = "PYTORCH_CUDA_ALLOC_CONF"


@dataclass
class Job:
    """A model with its data and its loss, before any optimizer."""

    model: torch.nn.Module
    #: Makes the batch of one step, on the device the context names.
    make_batch: Callable[[int], Any]
    loss: Callable[[torch.nn.Module, Any], torch.Tensor]


@dataclass(frozen=True)
class Case:
    name: str
    #: Builds the model on the CPU. Exactly one of `build` and `script` is given.
    build: Callable[[Context], Job] | None = None
    #: Does everything itself and tells the context when a step has ended.
    script: Callable[[Context], None] | None = None
    optimizer: str = "adamw"
    precision: str = "fp32"
    channels_last: bool = False
    steps: int = 3
    #: Batches whose gradients are added up before one optimizer step.
    accumulate: int = 1
    clip_gradients: bool = False
    zero_gradients_in_place: bool = False
    #: PYTORCH_CUDA_ALLOC_CONF.
    settings: str = ""
    #: What `set_per_process_memory_fraction` allows.
    cap_gib: float | None = None
    environment: dict[str, str] = field(default_factory=dict)
    #: Sizes depend on values that a card without arithmetic cannot know (expert routing).
    is_data_dependent: bool = False
    #: Runs with nothing else on the card, so that the card's own counters belong to it.
    alone: bool = False
    #: Roughly what it takes, for running several at a time.
    rough_gib: float = 8.0
    #: Roughly how long it takes on the card; long ones start first.
    rough_seconds: float = 8.0
    family: str = ""

    def process_environment(self) -> dict[str, str]:
        """Variables that must be set before torch is imported."""
        return {SETTINGS_VARIABLE: self.settings, **self.environment}

    def definition(self) -> dict[str, Any]:
        """What a reader of the results needs to know about the case."""
        return {
            "optimizer": self.optimizer if self.build else "in the script",
            "precision": self.precision,
            "channels_last": self.channels_last,
            "steps": self.steps,
            "accumulate": self.accumulate,
            "settings": self.settings,
            "cap_gib": self.cap_gib,
            "is_data_dependent": self.is_data_dependent,
            "alone": self.alone,
        }


CASES: dict[str, Case] = {}


def case(name: str, build: Callable[[Context], Job] | None = None, **options: Any) -> None:
    """Adds a case to the table, under the family of the module that calls it."""
    entry = Case(name=name, build=build, family=_calling_module(), **options)
    if name in CASES:
        raise ValueError(f"two cases are called {name}")
    if (entry.build is None) == (entry.script is None):
        raise ValueError(f"{name} needs either something to build or a script")
    if entry.precision not in PRECISIONS:
        raise ValueError(f"{name} names an unknown precision: {entry.precision}")
    CASES[name] = entry


def _calling_module() -> str:
    import sys

    return str(sys._getframe(2).f_globals["__name__"]).rsplit(".", maxsplit=1)[-1]
