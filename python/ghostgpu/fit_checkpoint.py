"""`ghostgpu.fit(checkpoint=…)`: recomputes blocks of one model in backward."""

from __future__ import annotations

import contextlib
import functools
import inspect
from typing import Any

from .fit_class import class_with_forward


def checkpoint_blocks(torch: Any, model: Any, wanted: str) -> None:
    """Checkpoint the repeated blocks of a model: all (`auto`), a number of them, or by name."""
    from .tricks.checkpointing import blocks_of, spread
    from .tricks.refusal import Refused

    enable = getattr(model, "gradient_checkpointing_enable", None)
    if wanted == "auto" and enable is not None:
        if "gradient_checkpointing_kwargs" in inspect.signature(enable).parameters:
            enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        else:
            enable()
        if getattr(getattr(model, "config", None), "use_cache", False):
            model.config.use_cache = False
        return
    blocks = list(blocks_of(torch, model))
    if wanted.isdigit():
        blocks = spread(blocks, int(wanted))
    elif wanted != "auto":
        names = [each.strip() for each in wanted.split(",")]
        blocks = [
            module
            for path, module in model.named_modules()
            if path in names or type(module).__name__ in names
        ]
    if not blocks:
        raise Refused(
            f"{type(model).__name__} has no blocks to checkpoint.",
            "name the modules whose activations are to be computed again",
        )
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

    return class_with_forward(original, forward)
