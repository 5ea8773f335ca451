"""Makes frameworks evaluate although passes are cut.

Lightning counts the batches of an epoch to know when to validate, and transformers' Trainer
evaluates and saves every N steps. With passes cut in the middle, neither would get there.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..guard import quietly

if TYPE_CHECKING:
    from .coverage import Coverage

LIGHTNING = frozenset(
    {
        "lightning.pytorch.loops.training_epoch_loop",
        "pytorch_lightning.loops.training_epoch_loop",
    }
)
TRANSFORMERS = "transformers.trainer_callback"


def after_import(coverage: Coverage, module: ModuleType) -> None:
    """Adapt a framework that has just been imported."""
    if module.__name__ in LIGHTNING:
        _adapt_lightning(coverage, module)
    elif module.__name__ == TRANSFORMERS:
        _adapt_transformers(coverage, module)


def _adapt_lightning(coverage: Coverage, module: Any) -> None:
    """Validate after the last batch of a cut pass."""
    loop = module._TrainingEpochLoop
    original = loop._should_check_val_fx
    is_due = quietly(lambda self: coverage.is_at_last_batch and self._should_check_val_epoch())

    @functools.wraps(original)
    def should_check(self: Any, *arguments: Any, **options: Any) -> bool:
        return bool(original(self, *arguments, **options)) or bool(is_due(self))

    loop._should_check_val_fx = should_check


def _adapt_transformers(coverage: Coverage, module: Any) -> None:
    """Evaluate and save once after the first steps if the Trainer does so every N steps."""
    flow = module.DefaultFlowCallback
    original = flow.on_step_end

    @quietly
    def hasten(args: Any, state: Any, control: Any) -> None:
        if state.global_step != coverage.progress.extent.first_steps:
            return
        if _is_by_steps(args, "eval_strategy", "evaluation_strategy"):
            control.should_evaluate = True
        if _is_by_steps(args, "save_strategy"):
            control.should_save = True

    @functools.wraps(original)
    def on_step_end(self: Any, args: Any, state: Any, control: Any, **options: Any) -> Any:
        result = original(self, args, state, control, **options)
        hasten(args, state, control)
        return result

    flow.on_step_end = on_step_end


def _is_by_steps(args: Any, *names: str) -> bool:
    for name in names:
        value = getattr(args, name, None)
        if value is not None:
            return str(getattr(value, "value", value)) == "steps"
    return False
