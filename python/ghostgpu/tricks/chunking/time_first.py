"""Finds out whether what was taken for the batch is the time of a sequence.

Recurrent layers and attention of PyTorch take time in the first dimension unless they are told
otherwise. Shapes tell which dimension of their input grows with the number of samples, so this is
seen in a rehearsal, too, where values are not computed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Optional

import torch
from torch import nn

Lengths = dict[str, tuple[int, int]]
"""Of each layer that takes time first: how many steps and how many samples it got."""


@contextlib.contextmanager
def lengths_noted(model: nn.Module) -> Iterator[Lengths]:
    """Note what such layers of a model get meanwhile."""
    noted: Lengths = {}

    def watch(path: str) -> Any:
        def note(module: nn.Module, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
            for each in (*arguments[:1], *options.values()):
                if isinstance(each, torch.Tensor) and each.dim() == 3:
                    noted[path] = (each.shape[0], each.shape[1])
                    return

        return note

    handles = [
        module.register_forward_pre_hook(watch(path), with_kwargs=True)
        for path, module in model.named_modules()
        if _takes_time_first(module)
    ]
    try:
        yield noted
    finally:
        for handle in handles:
            handle.remove()


def _takes_time_first(module: nn.Module) -> bool:
    # A layer of an encoder need not call its attention: in evaluation it has a shorter way.
    inner = getattr(module, "self_attn", module)
    is_known = isinstance(inner, (nn.RNNBase, nn.MultiheadAttention))
    return is_known and not getattr(inner, "batch_first", True)


def cut_sequence(of_some: Lengths, of_twice_as_many: Lengths) -> Optional[str]:
    """A layer whose sequences became longer where there should be more of them."""
    for path, (steps, samples) in of_some.items():
        if of_twice_as_many.get(path) == (2 * steps, samples):
            return path
    return None
