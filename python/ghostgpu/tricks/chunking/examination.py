"""Finds out, at the first call of its form, whether a model can be run in chunks.

A few samples go through the model together and in two halves (`trial`). Rows of the results must be
the same in both: then samples do not depend on each other, and the batch is where it was looked
for. So must gradients (`gradient_trial`) and what is left in attributes. Losses that the model
computes itself are matched with what they may be the mean of. In a rehearsal nothing is computed,
so only shapes are compared there; the memory that it takes is the same.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Callable, Optional

import torch
from torch import nn

from ..refusal import Refused
from ..surviving_oom_errors import first_line, given_up, is_out_of_memory, release
from .batch import ALTERNATIVE, Batch, other_readings
from .findings import Findings, Model
from .nested import Nested
from .trial import Trial


def require_independent_samples(model: nn.Module) -> None:
    """Refuse what is known to mix the samples of a batch, and hooks that would see chunks."""
    name = type(model).__name__
    for path, module in model.named_modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and _uses_batch_statistics(module):
            raise Refused(
                f"{name} cannot be run in chunks: {path or 'it'} is a {type(module).__name__} in "
                "training mode, whose mean and variance are those of the whole batch.",
                "use checkpointing; or freeze the statistics with eval() on these layers, or use "
                "GroupNorm",
            )
        for kind, hooks in _hooks(module):
            if not all(_is_of_a_library(hook) for hook in hooks):
                raise Refused(
                    f"{name} cannot be run in chunks: a {kind} hook of the script at "
                    f"{path or 'the model'} would see chunks, some of them twice.",
                    "return what the hook collects from forward instead",
                )


def _hooks(module: nn.Module) -> list[tuple[str, list[Any]]]:
    return [
        ("forward", [*module._forward_hooks.values(), *module._forward_pre_hooks.values()]),
        ("backward", [*module._backward_hooks.values(), *module._backward_pre_hooks.values()]),
    ]


def _uses_batch_statistics(module: nn.modules.batchnorm._BatchNorm) -> bool:
    return module.training or module.running_mean is None


def _is_of_a_library(hook: Any) -> bool:
    function = getattr(hook, "func", hook)  # a `functools.partial`
    name = getattr(function, "__module__", None) or type(function).__module__
    file = getattr(sys.modules.get(name), "__file__", None) or ""
    return "site-packages" in file or "dist-packages" in file or name.split(".")[0] in _OWN


_OWN = ("torch", __name__.split(".")[0])


def examine(
    model: Model,
    make: Callable[..., Any],
    arguments: Nested,
    batch: Batch,
    chunks: int,
    needs_gradients: bool,
    known: Optional[Findings] = None,
) -> Findings:
    """Try a few samples; raises `Refused` if chunks would have other results.

    `known`: findings of before that leave open what a loss is the mean of, and these samples tell.
    """
    largest = -(-batch.samples // chunks)
    half = max(1, min(2, batch.samples // 2, batch.samples // chunks))
    attempts = (half, 1, 1) if model.survives else (half,)
    for size in attempts[:-1]:
        with contextlib.suppress(_OutOfMemory):
            return _examined(model, make, arguments, batch, size, largest, needs_gradients, known)
        release(model.cards)
    try:
        return _examined(
            model, make, arguments, batch, attempts[-1], largest, needs_gradients, known
        )
    except _OutOfMemory as error:
        raise given_up(
            torch,
            f"{model.name} ran out of memory with {2 * attempts[-1]} samples of a batch of "
            f"{batch.samples}. The last error was: {error}",
        ) from None


class _OutOfMemory(Exception):
    """Memory ran out in a trial; what was said, without the frames that hold its tensors."""


def _examined(
    model: Model,
    make: Callable[..., Any],
    arguments: Nested,
    batch: Batch,
    half: int,
    largest: int,
    needs_gradients: bool,
    known: Optional[Findings],
) -> Findings:
    failure: Optional[Refused] = None
    for reading in (batch, *other_readings(batch, arguments)):
        trouble: Optional[str] = None
        try:
            trial = Trial(model, make, arguments, reading, half, largest, known)
            return trial.findings(needs_gradients)
        except Refused as refused:
            failure = failure or refused
        except Exception as error:
            if is_out_of_memory(torch, error):
                trouble = first_line(error)
            failure = failure or Refused(
                f"{model.name} cannot be run in chunks: it fails with {half} of "
                f"{batch.samples} samples ({type(error).__name__}: {first_line(error)}).",
                ALTERNATIVE,
            )
        if trouble is not None:
            raise _OutOfMemory(trouble)
    assert failure is not None
    raise failure
