"""`ghostgpu.fit`: tricks for one model and one optimizer, applied in the script's own code."""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, Any, Optional, TypeVar, Union

from .fit_class import class_with_forward

if TYPE_CHECKING:
    from torch import nn

    from .tricks.chunking.chunker import Chunker

    AnyModel = TypeVar("AnyModel", bound=nn.Module)
else:
    AnyModel = TypeVar("AnyModel")

AnyOptimizer = TypeVar("AnyOptimizer")

_FITTED: weakref.WeakKeyDictionary[Any, Chunker] = weakref.WeakKeyDictionary()
"""Models that run in chunks."""


def fit(
    model: AnyModel,
    optimizer: AnyOptimizer,
    *,
    chunks: int = 1,
    evaluation_chunks: int = 1,
    survive_oom: bool = False,
    checkpoint: Optional[Union[str, int]] = None,
    offload_activations: Optional[int] = None,
    step_in_backward: bool = False,
    offload_optimizer: bool = False,
) -> tuple[AnyModel, AnyOptimizer]:
    """Make a model and its optimizer need less memory, with the same gradients.

    ```python
    model, optimizer = ghostgpu.fit(model, optimizer, chunks=4, checkpoint="auto")
    ```

    Returns the same two objects, changed; nothing else in the script has to change. What would
    change the results is refused with `ghostgpu.Refused`, before the first step.

    Args:
        model: A model, or one inside `DistributedDataParallel`.
        optimizer: Its optimizer; `None` for evaluation.
        chunks: Run training batches in this many chunks, with the loss of the whole batch.
        evaluation_chunks: Run batches without gradients in this many chunks.
        survive_oom: Repeat what runs out of memory in more chunks.
        checkpoint: `auto` recomputes the activations of all repeated blocks in backward; a number,
            those of this many blocks, evenly spread; names of modules or classes, separated by
            commas (`encoder.layer.*`), those of these.
        offload_activations: Keep saved tensors of this many bytes or more on the host.
        step_in_backward: Step each parameter as soon as its gradient is complete.
        offload_optimizer: Keep the optimizer's state on the host.
    """
    import torch

    from .tricks import catalogue
    from .tricks.refusal import Refused

    asked = {
        "chunking": {"chunks": str(chunks)} if chunks > 1 else None,
        "evaluation-chunks": {"chunks": str(evaluation_chunks)} if evaluation_chunks > 1 else None,
        "surviving-oom": {} if survive_oom else None,
        "checkpointing": {"blocks": str(checkpoint)} if checkpoint is not None else None,
        "offload-activations": {} if offload_activations is not None else None,
        "optimizer-in-backward": {} if step_in_backward else None,
        "offload-optimizer": {} if offload_optimizer else None,
    }
    for name, least in (("chunks", chunks), ("evaluation_chunks", evaluation_chunks)):
        if least < 1:
            raise ValueError(f"{name} must be at least 1, not {least}")
    requests = [(name, options) for name, options in asked.items() if options is not None]
    catalogue.checked(requests)
    if optimizer is None and (step_in_backward or offload_optimizer):
        raise Refused("There is no optimizer to change.", "pass the model's optimizer to fit")
    if checkpoint is not None:
        from .fit_checkpoint import checkpoint_blocks

        checkpoint_blocks(torch, model, str(checkpoint))
    if chunks > 1 or evaluation_chunks > 1 or survive_oom or offload_activations is not None:
        from .tricks.chunking.chunker import Chunker

        chunker = Chunker()
        chunker.chunks, chunker.evaluation_chunks = chunks, evaluation_chunks
        chunker.survives = survive_oom
        _cut(model, chunker, offload_activations)
    if step_in_backward:
        from .tricks.optimizer_in_backward import StepInBackward

        StepInBackward(optimizer)
    if offload_optimizer:
        from .tricks.offload_optimizer import StateOnHost

        StateOnHost(torch, optimizer)
    return model, optimizer


def _cut(model: Any, chunker: Chunker, offloaded: Optional[int]) -> None:
    """Route the calls of a model through a chunker, by giving the model its own class."""
    import torch
    from torch.nn.parallel import DistributedDataParallel

    from .tricks.chunking import is_sharded
    from .tricks.offload_activations import OnHost
    from .tricks.refusal import Refused

    if is_sharded(model):
        raise Refused(
            f"{type(model).__name__} cannot be run in chunks: FSDP gathers its parameters for each "
            "call, and would not find them in backward.",
            "use checkpoint, or a smaller batch with ghostgpu.accumulate",
        )
    inner = model.module if isinstance(model, DistributedDataParallel) else model
    outer = model if inner is not model else None
    host = OnHost(torch, offloaded) if offloaded is not None else None
    if inner in _FITTED:
        raise Refused(
            f"{type(inner).__name__} runs in chunks already.", "call fit once for each model"
        )
    _FITTED[inner] = chunker
    # Libraries such as Accelerate set `forward` on the instance: it runs inside the chunker.
    own = inner.__dict__.pop("forward", None)
    inner.__class__ = _cut_class(type(inner), outer, host, own)


def _cut_class(original: Any, outer: Any, host: Any, own: Any) -> Any:
    wrapper = weakref.ref(outer) if outer is not None else lambda: None

    def forward(self: Any, *arguments: Any, **options: Any) -> Any:
        is_copy = self not in _FITTED
        make = own if own is not None and not is_copy else functools.partial(original.forward, self)
        if host is not None:
            make = functools.partial(_on_host, host, self, make)
        if is_copy:
            return make(*arguments, **options)
        ddp = wrapper()
        group = ddp.process_group if ddp is not None and ddp.require_backward_grad_sync else None
        return _FITTED[self].call(make, self, arguments, options, group)

    return class_with_forward(original, forward)


def _on_host(host: Any, model: Any, make: Any, *arguments: Any, **options: Any) -> Any:
    import torch

    if not torch.is_grad_enabled():
        return make(*arguments, **options)
    with host.keeping(model):
        return make(*arguments, **options)
