"""Infers from a stack what the script was doing: moving the model, forward, backward, ..."""

from __future__ import annotations

import os
from types import FrameType
from typing import Any

from .stacks import is_backward, is_user_code

_MODULE_FILE = os.path.join("torch", "nn", "modules", "module.py")
_FUNCTION_FILE = os.path.join("torch", "autograd", "function.py")
_FUNCTIONAL_FILE = os.path.join("torch", "nn", "functional.py")
_OPTIMIZER_FOLDER = os.path.join("torch", "optim") + os.sep
_MOVES = frozenset({"_apply", "to", "cuda"})
_CALLS = frozenset({"_call_impl", "_wrapped_call_impl"})


def stage_of(frames: list[FrameType], torch: Any, steps: int) -> str:
    """The stage that a stack (innermost last) belongs to, in the words of `OomReport`."""
    # First: a backward pass may recompute a forward (checkpointing), and Lightning calls the
    # whole training step, backward included, from inside `optimizer.step`.
    if any(is_backward(frame) for frame in frames):
        return "backward"
    forward = "forward" if follows_gradients(frames, torch) else "evaluation"
    for frame in reversed(frames):
        stage = _stage_of_frame(frame, torch, forward)
        if stage is not None:
            return stage
    if steps > 0 or _has_begun_forward(frames, torch):
        return forward
    return "setup"


def _stage_of_frame(frame: FrameType, torch: Any, forward: str) -> str | None:
    file, function = frame.f_code.co_filename, frame.f_code.co_name
    if _OPTIMIZER_FOLDER in file:
        # What the constructor allocates belongs to setup.
        return "setup" if function in ("__init__", "add_param_group") else "optimizer step"
    if file.endswith(_MODULE_FILE):
        if function in _MOVES:
            return "moving the model"
        if function in _CALLS:
            return forward
    if file.endswith(_FUNCTIONAL_FILE):
        return forward
    if function == "step" and isinstance(frame.f_locals.get("self"), torch.optim.Optimizer):
        return "optimizer step"
    return None


def follows_gradients(frames: list[FrameType], torch: Any) -> bool:
    """Whether the running code will be differentiated.

    Inside a custom autograd function (checkpoints, chunks, fused losses), gradients are disabled.
    There the model's mode decides, which is the same inside and outside.
    """
    if torch.is_grad_enabled():
        return True
    if not any(_is_function(frame) for frame in frames):
        return False
    modules = (frame.f_locals.get("self") for frame in frames if _is_call(frame))
    modes = [module.training for module in modules if isinstance(module, torch.nn.Module)]
    return bool(modes) and modes[-1]


def _is_function(frame: FrameType) -> bool:
    return frame.f_code.co_name == "apply" and frame.f_code.co_filename.endswith(_FUNCTION_FILE)


def _is_call(frame: FrameType) -> bool:
    return frame.f_code.co_name in _CALLS and frame.f_code.co_filename.endswith(_MODULE_FILE)


def _has_begun_forward(frames: list[FrameType], torch: Any) -> bool:
    """Whether a forward pass ran: the user's frames hold a tensor with an autograd graph."""
    return any(
        isinstance(value, torch.Tensor) and value.grad_fn is not None
        for frame in frames
        if is_user_code(frame.f_code.co_filename)
        for value in list(frame.f_locals.values())
    )
