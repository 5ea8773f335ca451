"""Counts the operators that selective checkpointing passes through Python.

`torch.utils.checkpoint.create_selective_checkpoint_contexts` asks a policy about every operator, in
forward and again when a block is recomputed. That takes the host longer than the operator itself,
whether or not it reaches the card, so the prediction of step times needs the number.
"""

from __future__ import annotations

import functools
from typing import Any, Callable

from .preload import dispatch_noter

# Both have been there since torch 2.4; older versions have no selective checkpointing.
_MODES = ("_CachingTorchDispatchMode", "_CachedTorchDispatchMode")


def count_operators() -> None:
    """Watch the modes of PyTorch's checkpointing."""
    import torch.utils.checkpoint

    note = dispatch_noter()
    for name in _MODES:
        mode = getattr(torch.utils.checkpoint, name, None)
        if mode is not None:
            mode.__torch_dispatch__ = _counted(mode.__torch_dispatch__, note)


def _counted(dispatch: Callable[..., Any], note: Callable[[], object]) -> Callable[..., Any]:
    @functools.wraps(dispatch)
    def counted(mode: Any, *arguments: Any, **options: Any) -> Any:
        note()
        return dispatch(mode, *arguments, **options)

    return counted
