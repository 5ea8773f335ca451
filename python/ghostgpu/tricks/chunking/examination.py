"""Finds out, at the first call of its form, whether a model can be run in chunks.

A few samples go through the model together and in two halves. Rows of the results must be the same
in both: then samples do not depend on each other, and the batch is where it was looked for. Losses
that the model computes itself are matched with what they may be the mean of. In a rehearsal nothing
is computed, so only shapes are compared there; the memory that it takes is the same.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any, Callable, Optional

import torch
from torch import nn

from ..refusal import Refused
from ..surviving_oom_errors import first_line, is_out_of_memory, out_of_memory_error, release
from .batch import ALTERNATIVE, Batch, other_readings
from .findings import Findings, Model
from .losses import Weighting, candidates, combined
from .nested import Nested, flatten
from .parameters import versions
from .surroundings import AutocastState, Buffers, RandomState
from .time_first import cut_sequence, lengths_noted


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
) -> Findings:
    """Try a few samples; raises `Refused` if chunks would have other results."""
    half = max(1, min(2, batch.samples // 2, batch.samples // chunks))
    attempts = (half, 1, 1) if model.survives else (half,)
    for size in attempts[:-1]:
        with contextlib.suppress(_OutOfMemory):
            return _examined(model, make, arguments, batch, size, needs_gradients)
        release(model.cards)
    try:
        return _examined(model, make, arguments, batch, attempts[-1], needs_gradients)
    except _OutOfMemory as error:
        raise out_of_memory_error(torch)(
            f"{model.name} ran out of memory with {2 * attempts[-1]} samples of a batch of "
            f"{batch.samples}. The last error was: {error}"
        ) from None


class _OutOfMemory(Exception):
    """Memory ran out in a trial; what was said, without the frames that hold its tensors."""


def _examined(
    model: Model,
    make: Callable[..., Any],
    arguments: Nested,
    batch: Batch,
    half: int,
    needs_gradients: bool,
) -> Findings:
    failure: Optional[Refused] = None
    for reading in (batch, *other_readings(batch, arguments)):
        trouble: Optional[str] = None
        try:
            return _Trial(model, make, arguments, reading, half).findings(needs_gradients)
        except Refused as refused:
            failure = failure or refused
        except (RuntimeError, ValueError, IndexError, TypeError, AssertionError) as error:
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


class _Trial:
    def __init__(
        self, model: Model, make: Callable[..., Any], arguments: Nested, batch: Batch, half: int
    ) -> None:
        self._model = model
        self._make = make
        self._arguments = arguments
        self._batch = batch
        self._half = half
        self._leaves = self._with_ignored_labels()

    def _with_ignored_labels(self) -> list[Any]:
        """Labels of which halves have different numbers, so that means over them differ, too."""
        leaves = [
            leaf.detach() if isinstance(leaf, torch.Tensor) else leaf
            for leaf in self._arguments.leaves
        ]
        if not type(self._model.module).__module__.startswith("transformers."):
            return leaves  # elsewhere -100 need not be a label that is ignored
        for at, path in enumerate(self._arguments.paths):
            leaf = leaves[at]
            is_labels = path == "labels" and at in self._batch.cut and leaf.dim() == 2
            if is_labels and leaf.dtype == torch.int64 and leaf.shape[1] >= 4:
                leaves[at] = leaf.clamp(
                    min=0
                )  # where the first half had none, nothing would differ
                leaves[at][0, : leaf.shape[1] // 2] = -100
        return leaves

    def _run_first(self, end: int) -> Nested:
        """Run a few samples; of copies, since a model may write over its arguments."""
        chunk = [
            leaf.clone() if isinstance(leaf, torch.Tensor) else leaf
            for leaf in self._batch.chunk(self._leaves, 0, end)
        ]
        before = _versions_of(chunk)
        arguments, options = self._arguments.with_leaves(chunk)
        results = flatten(self._make(*arguments, **options), "output")
        for path, old, new in zip(self._arguments.paths, before, _versions_of(chunk)):
            if old != new:
                raise self._refused(
                    f"it writes over {path}, and some samples go through it more than once"
                )
        return results

    def _run(self, begin: int, end: int) -> tuple[Nested, list[Any]]:
        chunk = self._batch.chunk(self._leaves, begin, end)
        arguments, options = self._arguments.with_leaves(chunk)
        return flatten(self._make(*arguments, **options), "output"), chunk

    def findings(self, needs_gradients: bool) -> Findings:
        half = self._half
        with _undone(self._model):
            start = RandomState.now(self._model.cards)
            parameters = list(self._model.module.parameters())
            before = versions(parameters)
            with torch.set_grad_enabled(needs_gradients):
                tried = self._run_first(half)
            without_gradient = frozenset(
                tried.paths[at] for at in tried.tensors() if not tried.leaves[at].requires_grad
            )
            del tried
            if versions(parameters) != before:
                raise self._refused("it changes its own parameters while it runs")
            draws = not start.equals(RandomState.now(self._model.cards))
            # What is random is compared as in evaluation: dropout does not depend on samples.
            modes = _evaluating(self._model.module) if draws else contextlib.nullcontext()
            later = self._model.graph_later() if needs_gradients else contextlib.nullcontext()
            with torch.no_grad(), modes, later:
                with lengths_noted(self._model.module) as of_half:
                    first, first_leaves = self._run(0, half)
                second, second_leaves = self._run(half, 2 * half)
                with lengths_noted(self._model.module) as of_whole:
                    whole, _ = self._run(0, 2 * half)
            if AutocastState.now().is_on:
                torch.clear_autocast_cache()
        layer = cut_sequence(of_half, of_whole)
        if layer is not None:
            raise self._refused(
                f"the first dimension of its arguments is the time of sequences, not the batch: "
                f"{layer or 'it'} takes time first"
            )
        if not first.paths == second.paths == whole.paths:
            raise self._refused("what it returns depends on the number of samples")
        weightings: dict[str, Weighting] = {}
        for at in whole.tensors():
            path = whole.paths[at]
            parts = [first.leaves[at], second.leaves[at]]
            if whole.leaves[at].dim() == 0:
                weightings[path] = self._weighting(
                    path, whole.leaves[at], parts, [first_leaves, second_leaves]
                )
            else:
                self._require_same_rows(path, whole.leaves[at], parts)
        cut = frozenset(self._arguments.paths[at] for at in self._batch.cut)
        return Findings(cut, weightings, without_gradient if needs_gradients else frozenset())

    def _require_same_rows(self, path: str, whole: torch.Tensor, parts: list[torch.Tensor]) -> None:
        half = self._half
        rows = [part.shape[0] if part.dim() else 0 for part in parts]
        has_rows = rows[0] == rows[1] and sum(rows) == whole.shape[0] and rows[0] % half == 0
        other = next((part for part in parts if part.shape[1:] != whole.shape[1:]), None)
        if not has_rows or other is not None:
            shape = list((parts[0] if other is None else other).shape)
            raise self._refused(
                f"{path} has the shape {shape} for {half} samples and "
                f"{list(whole.shape)} for {2 * half}, so it has no row for each sample"
            )
        if whole.is_complex():
            whole, parts = torch.view_as_real(whole), [torch.view_as_real(part) for part in parts]
        if not whole.is_floating_point() or not whole.numel():
            return
        differ = _differ(whole, parts, self._tolerance(whole))
        if not self._model.is_rehearsed and bool(differ):
            raise self._refused(
                f"rows of {path} depend on the other samples of the batch, or the first "
                "dimension of its arguments is not the batch"
            )

    def _tolerance(self, tensor: torch.Tensor) -> float:
        if AutocastState.now().is_on or tensor.dtype in (torch.float16, torch.bfloat16):
            return 5e-2
        if tensor.dtype == torch.float64:
            return 1e-8
        return 1e-2 if tensor.is_cuda else 1e-4  # TF32

    def _weighting(
        self,
        path: str,
        whole: torch.Tensor,
        parts: list[torch.Tensor],
        leaves: list[list[Any]],
    ) -> Weighting:
        """What this loss is the mean of."""
        likely = list(candidates(self._arguments, self._batch.cut))
        best: Optional[Weighting] = None
        least = float("inf")
        for weighting in likely:
            counts = [weighting.count(self._arguments, chunk, self._half) for chunk in leaves]
            total = weighting.total(counts)
            weights = [weighting.weight(count, total, whole) for count in counts]
            distance = (combined(parts, weights) - whole).abs()
            if self._model.is_rehearsed:
                continue
            off = float(distance)
            # Among those that agree, the first, which is the one that knows of ignored labels.
            if off < least - 16 * torch.finfo(whole.dtype).eps * float(whole.abs()):
                best, least = weighting, off
        if self._model.is_rehearsed:
            return likely[0]
        bound = self._tolerance(whole) / 50 * max(1e-3, float(whole.abs()))
        if best is None or not least <= bound:
            raise self._refused(
                f"{path} is one number for all samples, and neither their sum nor a mean over "
                "samples or labels"
            )
        return best

    def _refused(self, reason: str) -> Refused:
        return Refused(f"{self._model.name} cannot be run in chunks: {reason}.", ALTERNATIVE)


_PIECE = 1 << 20
"""So many elements are compared at once: logits in float64 would take more than the model does."""


def _differ(whole: torch.Tensor, parts: list[torch.Tensor], tolerance: float) -> torch.Tensor:
    """Whether an element of the parts is off by more than this share of the largest one."""
    largest = torch.zeros((), dtype=torch.float64, device=whole.device)
    for piece in _pieces(whole):
        finite = torch.where(piece.isfinite(), piece.double().abs(), 0.0)
        largest = torch.maximum(largest, finite.max())
    bound = largest * tolerance
    differ = torch.zeros((), dtype=torch.bool, device=whole.device)
    for rows, part in zip(torch.split(whole, [len(part) for part in parts]), parts):
        for expected, found in zip(_pieces(rows), _pieces(part)):
            # Two that are both infinite or not a number have a distance that is not a number.
            differ |= ((expected.double() - found.double()).abs() > bound).any()
            differ |= (expected.isnan() != found.isnan()).any()
    return differ


def _pieces(tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return torch.split(tensor.reshape(-1), _PIECE)


def _versions_of(leaves: list[Any]) -> list[int]:
    return [
        leaf._version if isinstance(leaf, torch.Tensor) and not leaf.is_inference() else 0
        for leaf in leaves
    ]


@contextlib.contextmanager
def _undone(model: Model) -> Iterator[None]:
    """Leave no trace of what runs inside: generators and buffers."""
    start = RandomState.now(model.cards)
    buffers = Buffers(model.module, None)
    try:
        yield
    finally:
        buffers.restore()
        start.restore()


@contextlib.contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    flags = [(module, module.training) for module in model.modules()]
    for module, _ in flags:
        module.training = False
    try:
        yield
    finally:
        for module, flag in flags:
            module.training = flag
