"""The batch goes through the model in chunks, and the loss is that of the whole batch.

The model's forward pass runs chunk by chunk and keeps its results, and the graph of the last chunk
where there is room for it. The script computes its loss on all results, whatever loss that is. In
backward the other chunks are computed again, now with a graph, and gradients are summed.

Saves: all activations but those of one chunk.
Costs: one more forward pass less the last chunk's, with four chunks a quarter of a step; for models
with a large head a whole one, a third of a step, and its results twice. Nothing is computed
twice for models that compute their loss, in loops that zero gradients before forward (`at_once`).
Numbers: the same up to rounding. Dropout draws its masks chunk by chunk, so they are other masks
than those of the whole batch, from the same generator.
Conflicts: surviving-oom chooses the number of chunks itself.
Refused: batch norm in training mode, whose statistics are those of the whole batch; results that
are not one row (or several) for each sample; buffers that the script writes to between forward and
backward; models that leave tensors for the loss in attributes or in hooks of the script; gradients
of gradients; FSDP, which gathers parameters call by call.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Callable

from ..hooks import Hooks
from ..refusal import Refused
from ..trick import Trick

if TYPE_CHECKING:
    from .chunker import Chunker

_CALLERS: weakref.WeakKeyDictionary[Hooks, ModelCalls] = weakref.WeakKeyDictionary()


class ModelCalls:
    """Runs the script's calls of models in chunks; tricks that cut batches share it."""

    def __init__(self, hooks: Hooks) -> None:
        from .chunker import Chunker

        self._hooks = hooks
        self.chunker: Chunker = Chunker(hooks.is_rehearsed)
        self.chunker.own_backward = hooks.own_backward
        self.chunker.graph_later = hooks.graph_later
        # Tricks that come before it in the catalogue are inside, around each chunk; autocast and
        # others are around the whole call.
        hooks.around_models.append(self._call)

    def _call(self, make: Callable[..., Any], module: Any, arguments: Any, options: Any) -> Any:
        def made(*arguments: Any, **options: Any) -> Any:
            if not self._hooks.is_in_backward:
                return make(*arguments, **options)
            with self._hooks.repeating():
                return make(*arguments, **options)

        try:
            return around_wrappers(self.chunker, made, module, arguments, options)
        except Refused as refused:
            raise self._hooks.refusal(refused.reason, refused.alternative) from None


def model_calls(hooks: Hooks) -> ModelCalls:
    """The one that stands at these hooks."""
    if hooks not in _CALLERS:
        _CALLERS[hooks] = ModelCalls(hooks)
    return _CALLERS[hooks]


def around_wrappers(
    chunker: Chunker, make: Callable[..., Any], module: Any, arguments: Any, options: Any
) -> Any:
    """Call `module` in chunks; of a model inside DDP only the model, so that it reduces once."""
    from torch.nn.parallel import DistributedDataParallel

    if is_sharded(module):
        raise Refused(
            f"{type(module).__name__} cannot be run in chunks: FSDP gathers its parameters for "
            "each call, and would not find them in backward.",
            "use checkpointing, or a smaller batch with ghostgpu.accumulate",
        )
    if not isinstance(module, DistributedDataParallel):
        return chunker.call(make, module, arguments, options)
    inner = module.module
    group = module.process_group if module.require_backward_grad_sync else None
    original, own = inner.forward, inner.__dict__.get("forward")

    def forward(*arguments: Any, **options: Any) -> Any:
        return chunker.call(original, inner, arguments, options, group)

    inner.forward = forward
    try:
        return make(*arguments, **options)
    finally:
        # On the instance it would be copied along with the model. Others may have put theirs there.
        if own is None:
            del inner.forward
        else:
            inner.forward = own


def is_sharded(module: Any) -> bool:
    """Whether a part of a model is in the hands of FSDP, of either version."""
    names = ("FullyShardedDataParallel", "FSDPModule")
    return any(
        kind.__name__ in names and kind.__module__.startswith("torch.distributed")
        for part in module.modules()
        for kind in type(part).__mro__
    )


def in_words(chunker: Chunker) -> str | None:
    """What was cut, and what was not."""
    if not chunker.chunked:
        return None
    cut = [f"{name} ran in {chunks} chunks" for name, chunks in sorted(chunker.chunked.items())]
    alone = [f"{name} as it is" for name in sorted(chunker.left_alone)]
    return ", ".join([*cut, *alone])


class Chunking(Trick):
    """Training batches in chunks."""

    name = "chunking"

    def install(self) -> None:
        self._calls = model_calls(self.hooks)
        self._calls.chunker.chunks = max(2, int(self.options["chunks"]))

    def did(self) -> str | None:
        return in_words(self._calls.chunker)

    def line(self) -> str | None:
        return f"model, optimizer = ghostgpu.fit(model, optimizer, chunks={self.options['chunks']})"
