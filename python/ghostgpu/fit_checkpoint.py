"""`ghostgpu.fit(checkpoint=…)`: recomputes blocks of one model in backward."""

from __future__ import annotations

import contextlib
import functools
import inspect
import weakref
from typing import Any

from .fit_class import class_with_forward

_CHECKPOINTED: weakref.WeakSet[Any] = weakref.WeakSet()
"""The classes of blocks that are recomputed."""


def checkpoint_blocks(torch: Any, model: Any, wanted: str) -> None:
    """Checkpoint the repeated blocks of a model: all (`auto`), a number of them, or by name."""
    from .tricks.checkpointing import (
        blocks_of,
        named_blocks,
        no_such_block,
        spread,
        switch_off_cache,
    )
    from .tricks.refusal import Refused

    if isinstance(model, torch.nn.parallel.DistributedDataParallel):
        model = model.module
    if any(type(module) in _CHECKPOINTED for module in model.modules()):
        raise Refused(
            f"{type(model).__name__} has blocks that are checkpointed already.",
            "call fit once for each model",
        )
    enable = getattr(model, "gradient_checkpointing_enable", None)
    if wanted == "auto" and enable is not None:
        if "gradient_checkpointing_kwargs" in inspect.signature(enable).parameters:
            enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        else:
            enable()
        switch_off_cache(model)
        return
    if wanted == "auto" or wanted.isdigit():
        blocks = list(blocks_of(torch, model))
        if not blocks:
            raise Refused(
                f"{type(model).__name__} has no blocks to checkpoint.",
                "name the modules whose activations are to be computed again",
            )
        blocks = blocks if wanted == "auto" else spread(blocks, int(wanted))
    else:
        blocks, missing = named_blocks(model, wanted)
        if missing:
            reason, alternative = no_such_block(model, missing)
            raise Refused(f"{reason}.", alternative)
    switch_off_cache(model)
    for block in blocks:
        block.__class__ = _checkpointed(torch, type(block))


def _checkpointed(torch: Any, original: Any) -> Any:
    """A class whose forward pass keeps nothing but its arguments."""
    import torch.utils.checkpoint as checkpointing

    from .tricks.chunking.surroundings import buffers_set

    def forward(self: Any, *arguments: Any, **options: Any) -> Any:
        run = functools.partial(original.forward, self)
        if not (self.training and torch.is_grad_enabled()):
            return run(*arguments, **options)

        def contexts() -> Any:
            # Running statistics are updated only in the first pass.
            return contextlib.nullcontext(), buffers_set(self, dict(self.named_buffers()))

        return checkpointing.checkpoint(
            run, *arguments, use_reentrant=False, context_fn=contexts, **options
        )

    made = class_with_forward(original, forward)
    _CHECKPOINTED.add(made)
    return made
