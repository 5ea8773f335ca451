"""Stand-ins for a model's parameters while a chunk is computed again.

Gradients of chunks are summed in the stand-ins, which share memory with the parameters. Autograd
then hands the sum to each parameter once, as after a plain backward pass: hooks on parameters see
the gradient of the whole batch, DDP reduces once, and nothing has to be undone when a chunk fails.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from ..refusal import Refused


class StandIns:
    """One stand-in for each trainable parameter of a model, made once."""

    def __init__(self, model: nn.Module) -> None:
        self._model = weakref.ref(model)
        self._of: dict[int, tuple[nn.Parameter, nn.Parameter]] = {}

    def of(self, parameters: list[nn.Parameter]) -> list[nn.Parameter]:
        """The stand-ins of these parameters, without gradients."""
        found = []
        for parameter in parameters:
            original, stand_in = self._of.get(id(parameter), (None, None))
            if original is not parameter or stand_in is None:
                stand_in = nn.Parameter(parameter.detach())
                stand_in.__dict__.update(parameter.__dict__)
                self._of[id(parameter)] = (parameter, stand_in)
            elif _is_elsewhere(stand_in, parameter):
                stand_in.data = parameter.detach()
            stand_in.grad = None
            found.append(stand_in)
        return found

    @contextlib.contextmanager
    def in_place(self, parameters: list[nn.Parameter]) -> Iterator[None]:
        """Have the model use the stand-ins."""
        model = self._model()
        assert model is not None
        by_identity = {id(each): self._of[id(each)][1] for each in parameters}
        replaced: list[tuple[dict[str, Any], str, Any]] = []
        flattened: list[tuple[Any, Any, Any]] = []
        try:
            missing = set(by_identity)
            for module in model.modules():
                names = [
                    name for name, each in module._parameters.items() if id(each) in by_identity
                ]
                for name in names:
                    original = module._parameters[name]
                    missing.discard(id(original))
                    replaced.append((module._parameters, name, original))
                    module._parameters[name] = by_identity[id(original)]
                if names and isinstance(module, nn.RNNBase):
                    # It keeps its weights in a list, too, and would copy them if they were others.
                    rnn: Any = module
                    flattened.append((rnn, rnn._flat_weights, rnn._flat_weight_refs))
                    weights = [by_identity.get(id(each), each) for each in rnn._flat_weights]
                    rnn._flat_weights = weights
                    rnn._flat_weight_refs = [weakref.ref(each) for each in weights]
            if missing:
                raise Refused(
                    f"{type(model).__name__} cannot be run in chunks: it had other parameters in "
                    "its forward pass than it has in backward (torch.func.functional_call).",
                    "leave chunking out for this model",
                )
            yield
        finally:
            for owner, name, original in replaced:
                owner[name] = original
            for rnn, own_weights, references in flattened:
                rnn._flat_weights = own_weights
                rnn._flat_weight_refs = references


def _is_elsewhere(stand_in: torch.Tensor, parameter: torch.Tensor) -> bool:
    return (
        stand_in.data_ptr() != parameter.data_ptr()
        or stand_in.shape != parameter.shape
        or stand_in.dtype != parameter.dtype
        or stand_in.stride() != parameter.stride()
    )


def versions(parameters: list[nn.Parameter]) -> list[int]:
    """Changes whenever one of these is written to."""
    return [0 if each.is_inference() else each._version for each in parameters]


def contents(parameters: list[nn.Parameter], reads: bool) -> list[str]:
    """Changes when one of these is written to through its `data`, which `versions` do not see.

    `reads`: whether there are values; a rehearsal only takes the memory.
    """
    sums: dict[torch.device, torch.Tensor] = {}
    for at, each in enumerate(parameters):
        if each.is_floating_point() and each.numel():
            # One number for all: so many small ones would take memory that nobody else needs.
            norm = torch.linalg.vector_norm(each.detach()).to(torch.float64)
            before = sums.get(each.device)
            sums[each.device] = norm if before is None else before.add_(norm, alpha=1 + at % 7)
    return [float(each).hex() for each in sums.values() if reads]


def taken_gradients(stand_ins: list[nn.Parameter]) -> list[torch.Tensor | None]:
    """The sums, which the stand-ins then no longer hold."""
    taken = [each.grad for each in stand_ins]
    for each in stand_ins:
        each.grad = None
    return taken
