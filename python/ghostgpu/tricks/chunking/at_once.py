"""Chunks that are differentiated where they are computed, so that nothing is computed twice.

A model that computes its loss itself returns one number. Whatever the script does with it, backward
gets one number in turn: the gradient of that loss. So the backward pass of a chunk can follow its
forward pass, as if that gradient were 1, and the script's backward pass multiplies the sums with
what it really is. Autograd hands these on as it does with repeated chunks.

It must not be in vain, and gradients must not be in memory longer than they are with chunks that
are repeated. So it is not done where

* float16 takes part: gradients of a loss that no scaler has multiplied yet would vanish in it,
* the arguments get gradients of their own, or there are several losses,
* the script uses other results of the model in its loss, or does not differentiate at all,
* the gradients of the last step are there in forward, but no longer in backward: the new ones
  would be in memory beside them. If they are still there in backward, batches are accumulated.

The last two show in earlier calls of a model, so the first one is always repeated. Where they show
too late, chunks are repeated as well. What does take more memory are large results that the script
lets go of before backward, such as logits: they are there beside the gradients.
"""

from __future__ import annotations

from typing import Optional

import torch
from torch import nn

from .surroundings import AutocastState

_PATIENCE = 2
"""So many calls may be differentiated in vain: a script may try its model before it trains."""


class AtOnce:
    """Whether calls of one model are differentiated at once: what earlier ones have shown."""

    def __init__(self) -> None:
        self._is_known = False
        """Whether a call has had a backward pass."""
        self._is_in_vain = False
        self._in_vain = 0
        self._keeps_gradients: Optional[bool] = None
        """Whether gradients of earlier passes are still there in backward; None if not known."""
        self._is_open = False
        """Whether a call was differentiated, and neither used nor let go so far."""

    def may_begin(self, parameters: list[nn.Parameter]) -> bool:
        """Whether no gradients are in the way here, and it has been of use."""
        if self._is_in_vain or not self._is_known:
            return False
        return bool(self._keeps_gradients) or not have_gradients(parameters)

    def begun(self) -> None:
        """A call was differentiated."""
        self._is_open = True

    def used(self) -> None:
        """The script's backward pass took the gradients."""
        self._is_open = False

    def give_up(self) -> None:
        """Chunks are repeated from now on: the loss has other terms, or memory is too short."""
        self._is_open = False
        self._is_in_vain = True

    def let_go(self) -> None:
        """Another call begins, and nobody has used the gradients of an open one."""
        if self._is_open:
            self._is_open = False
            self._in_vain += 1
            self._is_in_vain = self._is_in_vain or self._in_vain >= _PATIENCE

    def note_backward(self, parameters: list[nn.Parameter], had_gradients: bool) -> None:
        """The backward pass of a call begins; whether there were gradients in forward."""
        self._is_known = True
        if had_gradients:
            self._keeps_gradients = have_gradients(parameters)


def have_gradients(parameters: list[nn.Parameter]) -> bool:
    """Whether some of these have gradients at present."""
    # Where a script has put other tensors in their place, PyTorch would warn of asking these.
    return any(each.is_leaf and each.grad is not None for each in parameters)


def is_in_float16(parameters: list[nn.Parameter], autocast: AutocastState) -> bool:
    """Whether gradients may be too small for their type unless the loss is scaled."""
    return autocast.is_in(torch.float16) or any(each.dtype == torch.float16 for each in parameters)


def scaled(
    gradients: list[Optional[torch.Tensor]], factor: torch.Tensor
) -> list[Optional[torch.Tensor]]:
    """These gradients multiplied in place, without waiting for a card to tell the number."""
    dense: dict[torch.device, list[torch.Tensor]] = {}
    for each in gradients:
        if each is None:
            continue
        if each.layout == torch.strided:
            dense.setdefault(each.device, []).append(each)
        else:
            each.mul_(factor.to(each.device))
    for device, group in dense.items():
        torch._foreach_mul_(group, factor.to(device))
    return gradients
