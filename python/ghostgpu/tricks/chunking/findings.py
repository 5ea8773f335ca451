"""What is known about a model from one call to the next."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Callable, ContextManager, Optional

import torch
from torch import nn

from .at_once import AtOnce
from .batch import Batch
from .losses import Weighting
from .nested import Nested
from .parameters import StandIns


@dataclass(frozen=True)
class Findings:
    """What examining a call of a certain form has shown."""

    cut: frozenset[str]
    """The paths of the arguments that are a batch."""
    weightings: dict[str, Weighting]
    """What each output that is one number is the mean of."""
    without_gradient: frozenset[str]
    """Outputs that no gradient flows through, though they are floating-point."""
    rivals: dict[str, tuple[Weighting, ...]] = field(default_factory=dict)
    """What a loss may be the mean of as well, as far as the samples that were tried tell."""
    attributes: frozenset[str] = frozenset()
    """Plain attributes that each pass sets, whatever the samples are."""

    @property
    def only_loss(self) -> Optional[str]:
        """The path of the loss that the model computes itself; None if there are several."""
        losses = [path for path in self.weightings if path not in self.without_gradient]
        return losses[0] if len(losses) == 1 else None

    def is_in_doubt(self, arguments: Nested, samples: int) -> bool:
        """Whether it matters for a batch which of several readings of a loss is right."""
        for path, rivals in self.rivals.items():
            chosen = self.weightings[path]
            counts = chosen.counts(arguments, list(arguments.leaves), samples)
            for rival in rivals:
                if "sum" in (chosen.kind, rival.kind) and chosen.kind != rival.kind:
                    return True
                others = rival.counts(arguments, list(arguments.leaves), samples)
                # As shares of the whole; where nothing counts there is no loss.
                if not torch.allclose(counts * others.sum(), others * counts.sum()):
                    return True
        return False


def telling_first(arguments: Nested, batch: Batch, findings: Findings) -> Nested:
    """The same batch in an order in which its first samples tell what a loss is the mean of."""
    leaves = list(arguments.leaves)
    readings = [
        each
        for path, rivals in findings.rivals.items()
        for each in (findings.weightings[path], *rivals)
    ]
    counts = [each.counts(arguments, leaves, batch.samples) for each in readings]
    shares = torch.stack([each / each.mean().clamp(min=1e-9) for each in counts])
    # Samples that differ most, and among them first those that count least.
    spread = (shares.amax(0) - shares.amin(0)).argsort(descending=True)
    few = spread[: min(4, batch.samples)]
    order = torch.cat([few[shares.amin(0)[few].argsort()], spread[len(few) :]])
    for at in batch.cut:
        leaf = leaves[at]
        leaves[at] = leaf.index_select(0, order.to(leaf.device))
    return Nested(arguments.paths, tuple(leaves), arguments._build)


class Model:
    """One model: how many chunks it runs in, and what was found out about it.

    It does not keep the model alive.
    """

    def __init__(
        self,
        module: nn.Module,
        chunks: int,
        survives: bool,
        is_rehearsed: bool,
        growth: list[str],
    ) -> None:
        self._module = weakref.ref(module)
        self.name = type(module).__name__
        self.chunks = chunks
        self.survives = survives
        self.is_rehearsed = is_rehearsed
        self.cards: tuple[int, ...] = ()
        self.moving: Optional[set[str]] = None
        """Buffers that its passes change; None before the first."""
        self.findings: dict[Any, Findings] = {}
        self._growth = growth
        """Where it writes, in words, why it runs in more chunks than it began with."""
        self.retries = 0
        """Allocations that PyTorch had to free its cache for, when this was last looked at."""
        self.thrashing_steps = 0
        self.stand_ins = StandIns(module)
        self.at_once = AtOnce()
        self.own_backward: Callable[[], ContextManager[None]] = contextlib.nullcontext
        """Put around backward passes that are not the script's."""
        self.graph_later: Callable[[], ContextManager[None]] = contextlib.nullcontext
        """Put around forward passes that are repeated with a graph."""

    @property
    def module(self) -> nn.Module:
        module = self._module()
        assert module is not None, "whoever calls a model keeps it alive"
        return module

    def grow(self, samples: int, where: str, trouble: str, tried: int | None = None) -> int:
        """Use more chunks from now on; returns how many."""
        tried = tried or self.chunks
        self.chunks = max(self.chunks, min(samples, 2 * tried))
        self._growth.append(f"{self.name} runs in {self.chunks} chunks: {where}: {trouble}")
        return min(samples, 2 * tried)


class Attributes:
    """Tensors that a model keeps as plain attributes, such as an auxiliary loss for the script.

    A script would find those of the last chunk, without a graph.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._before = {path: id(value) for path, value in self._present()}

    def _present(self) -> Iterator[tuple[str, torch.Tensor]]:
        for path, module in self._model.named_modules():
            made = _made_by_pre_hooks(module)
            for name, value in vars(module).items():
                if name in made or name in ("_parameters", "_buffers", "_modules"):
                    continue
                values = list(value) if isinstance(value, (list, tuple)) else [value]
                values = list(value.values()) if isinstance(value, dict) else values
                for each in values:
                    if isinstance(each, torch.Tensor) and not isinstance(each, nn.Parameter):
                        yield f"{path}.{name}" if path else name, each

    def left_with_a_graph(self) -> Optional[str]:
        """An attribute that has been set since, and through which gradients flow."""
        for path, value in self._present():
            if value.grad_fn is not None and self._before.get(path) != id(value):
                return path
        return None


def _made_by_pre_hooks(module: nn.Module) -> set[str]:
    """Weights that `weight_norm`, `spectral_norm` and pruning compute before each call."""
    hooks = module._forward_pre_hooks.values()
    names = [getattr(hook, "name", None) or getattr(hook, "_tensor_name", None) for hook in hooks]
    return {name for name in names if isinstance(name, str)}
