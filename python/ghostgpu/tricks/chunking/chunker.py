"""Runs the calls of models in chunks: decides whether, in how many, and keeps what is known."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Mapping
from typing import Any, Callable, ContextManager, Optional

import torch
from torch import nn

from ..refusal import LeftTraces, Refused
from ..surviving_oom_errors import is_out_of_memory, release
from .at_once import AtOnce
from .batch import (
    ALTERNATIVE,
    Batch,
    find_batch,
    require_openable,
    same_reading,
)
from .call import Call, ChunkedFunction
from .examination import examine, require_independent_samples
from .findings import Findings, Model, telling_first
from .nested import Nested, flatten_arguments

_THRASHING_STEPS = 2
"""After so many steps in a row in which PyTorch had to free its cache, chunks become smaller."""


class Chunker:
    """All models of a process that run in chunks."""

    def __init__(self, is_rehearsed: bool = False) -> None:
        self.chunks = 1
        """Into how many chunks a batch is cut while training."""
        self.evaluation_chunks = 1
        self.survives = False
        """Whether a call that runs out of memory is repeated in more chunks."""
        self.is_rehearsed = is_rehearsed
        self.chunked: dict[str, int] = {}
        """Models that ran in chunks, and the largest number of these."""
        self.left_alone: dict[str, str] = {}
        """Models that did not, and why."""
        self.growth: list[str] = []
        """Why models run in more chunks than they began with; outlives the models."""
        self._models: weakref.WeakKeyDictionary[nn.Module, Model] = weakref.WeakKeyDictionary()
        self._largest = 0
        self._latest: Callable[[], Optional[Call]] = lambda: None
        """The last call of a model in training, which may have kept a graph or gradients."""
        self._latest_at_once = AtOnce()
        """What is known about differentiating the calls of its model."""
        self.own_backward: Callable[[], ContextManager[None]] = contextlib.nullcontext
        """Put around backward passes that are not the script's."""
        self.graph_later: Callable[[], ContextManager[None]] = contextlib.nullcontext
        """Put around forward passes that are repeated with a graph."""

    def call(
        self,
        make: Callable[..., Any],
        module: nn.Module,
        arguments: tuple[Any, ...],
        options: Mapping[str, Any],
        group: Any = None,
    ) -> Any:
        """The result of `make(*arguments, **options)`, a call of `module`.

        `group`: the processes that must agree on the number of chunks before they begin.
        """
        # Looked up once: it takes a while in large models.
        parameters = list(module.parameters())
        size = sum(each.numel() for each in parameters)
        if size == 0:
            return make(*arguments, **options)
        # Activations of one chunk are there at a time, also if the step calls several models.
        previous = self._latest()
        if previous is not None:
            previous.drop_graph()
        nested = flatten_arguments(arguments, options)
        is_training = torch.is_grad_enabled() and (
            any(each.requires_grad for each in parameters)
            or any(nested.leaves[at].requires_grad for at in nested.tensors())
        )
        if is_training:
            self._latest_at_once.let_go()
            if previous is not None:
                previous.drop_gradients()
        chunks = self.chunks if is_training else self.evaluation_chunks
        if chunks == 1 and not self.survives:
            return make(*arguments, **options)
        if chunks == 1 and not is_training:
            has_failed, result = self._as_it_is(make, arguments, options)
            if not has_failed:
                return result
        try:
            model, prepared = self._prepared(
                make, module, parameters, arguments, options, is_training, group
            )
        except Refused as refused:
            # What a model is trained for is refused; small helpers beside it, evaluation, and what
            # need not be cut unless memory runs out, run as they are, with the same results.
            is_asked_for = is_training and self.chunks > 1
            is_undone = not isinstance(refused, LeftTraces)
            if not is_undone or (is_asked_for and size * 10 > self._largest):
                raise
            self.left_alone[type(module).__name__] = refused.reason
            return make(*arguments, **options)
        if prepared is None:
            return make(*arguments, **options)
        self._largest = max(self._largest, size)
        call, leaves = prepared
        try:
            result = self._run(call, leaves, is_training)
        except Refused as refused:
            if is_training:
                raise
            self.left_alone[type(module).__name__] = refused.reason
            return make(*arguments, **options)
        if call.chunks > 1:
            name = type(module).__name__
            self.chunked[name] = max(self.chunked.get(name, 0), call.chunks)
        if is_training and self.survives:
            self._look_for_thrashing(model, call.batch.samples)
        return result

    def _as_it_is(
        self, make: Callable[..., Any], arguments: tuple[Any, ...], options: Mapping[str, Any]
    ) -> tuple[bool, Any]:
        """Call it, without a graph; whether it ran out of memory, and what it returned."""
        try:
            return False, make(*arguments, **options)
        except RuntimeError as error:
            if not is_out_of_memory(torch, error):
                raise
        cuda: Any = torch.cuda
        release((0,) if cuda.is_initialized() else ())
        return True, None

    def _run(self, call: Call, leaves: list[Any], is_training: bool) -> Any:
        if is_training:
            call.note_surroundings()
            tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
            function: Any = ChunkedFunction
            results = function.apply(call, leaves, *tensors, *call.parameters)
            self._latest, self._latest_at_once = weakref.ref(call), call.model.at_once
        else:
            with torch.no_grad():
                results = call.run(leaves, is_training=False)
        assert call.form is not None
        joined = list(call.form.leaves)
        for at, tensor in zip(call.positions, results):
            joined[at] = tensor
        return call.form.with_leaves(joined)

    def _prepared(
        self,
        make: Callable[..., Any],
        module: nn.Module,
        parameters: list[nn.Parameter],
        arguments: tuple[Any, ...],
        options: Mapping[str, Any],
        is_training: bool,
        group: Any,
    ) -> tuple[Model, Optional[tuple[Call, list[Any]]]]:
        if is_training or "labels" in options:
            options = without_cache(module, options)
        nested = flatten_arguments(arguments, options)
        model = self._model(module, parameters, nested)
        require_openable(nested, model.name)
        batch = find_batch(nested)
        if batch is None:
            raise Refused(
                f"{model.name} cannot be run in chunks: none of its arguments is a tensor with "
                "a batch.",
                ALTERNATIVE,
            )
        chunks = model.chunks if is_training else self.evaluation_chunks
        if self.survives and not is_training:
            chunks = max(2, chunks)  # as it is it has failed
        if is_training and self.survives and group is not None:
            chunks = model.chunks = agreed(chunks, group)
        if batch.samples < 2 or (chunks == 1 and not self.survives):
            return model, None
        if torch._C._are_functorch_transforms_active():
            raise Refused(
                f"{model.name} cannot be run in chunks: it is called inside a function that "
                "torch.func transforms.",
                "leave chunking out for this model",
            )
        require_independent_samples(module)
        findings, batch = self._findings(model, make, nested, batch, max(2, chunks), is_training)
        chunks = min(chunks, batch.samples)
        is_synchronised = group is not None
        call = Call(model, make, nested, batch, findings, chunks, parameters, is_synchronised)
        return model, (call, list(nested.leaves))

    def _model(self, module: nn.Module, parameters: list[nn.Parameter], nested: Nested) -> Model:
        model = self._models.get(module)
        if model is None:
            model = Model(module, self.chunks, self.survives, self.is_rehearsed, self.growth)
            model.own_backward, model.graph_later = self.own_backward, self.graph_later
            self._models[module] = model
        tensors = [*parameters, *(nested.leaves[at] for at in nested.tensors())]
        model.cards = tuple(sorted({each.get_device() for each in tensors if each.is_cuda}))
        return model

    def _findings(
        self,
        model: Model,
        make: Callable[..., Any],
        nested: Nested,
        batch: Batch,
        chunks: int,
        is_training: bool,
    ) -> tuple[Findings, Batch]:
        # What has a gradient depends on what is frozen, and on which arguments have one.
        wanted = tuple(nested.leaves[at].requires_grad for at in nested.tensors())
        trained = bytes(each.requires_grad for each in model.module.parameters())
        form = (nested.paths, model.module.training, is_training, wanted, trained)
        known = model.findings.get(form)
        in_doubt: Optional[Findings] = None
        if known is not None:
            again = same_reading(nested, known.cut)
            if again is not None:
                if not known.is_in_doubt(nested, again.samples):
                    return known, again
                in_doubt, batch = known, again
                nested = telling_first(nested, batch, known)
        found = examine(model, make, nested, batch, chunks, is_training, in_doubt)
        model.findings[form] = found
        again = same_reading(nested, found.cut)
        assert again is not None
        return found, again

    def _look_for_thrashing(self, model: Model, samples: int) -> None:
        if not model.cards:
            return
        stats = torch.cuda.memory_stats_as_nested_dict(model.cards[0])
        retries = int(stats.get("num_alloc_retries", 0))
        is_thrashing = retries > model.retries
        model.retries = retries
        model.thrashing_steps = model.thrashing_steps + 1 if is_thrashing else 0
        if model.thrashing_steps >= _THRASHING_STEPS and model.chunks < samples:
            model.thrashing_steps = 0
            trouble = f"PyTorch had to free its cache in {_THRASHING_STEPS} steps in a row"
            model.grow(samples, "training", trouble)


def agreed(chunks: int, group: Any) -> int:
    """The largest number of chunks that any of these processes needs."""
    import torch.distributed as distributed

    device = "cuda" if distributed.get_backend(group) == "nccl" else "cpu"
    number = torch.tensor(chunks, device=device)
    distributed.all_reduce(number, op=distributed.ReduceOp.MAX, group=group)
    return int(number.item())


def without_cache(module: nn.Module, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Models of transformers return keys and values of all layers.

    A call for a loss does not need them: they are for writing on, one token after the other.
    """
    config = getattr(module, "config", None)
    if not getattr(config, "use_cache", False) or "use_cache" in options:
        return options
    if not type(module).__module__.startswith(("transformers.", "peft.")):
        return options
    return {**options, "use_cache": False}
