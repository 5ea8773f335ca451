"""Python stacks: where the script was when something happened, and which lines are the user's."""

from __future__ import annotations

import linecache
import os
import sys
import threading
from dataclasses import dataclass
from types import FrameType

from ..tricks.user_code import (
    frame_inside_backward,
    frames_of,
    is_backward,
    is_user_code,
    users_line,
)

__all__ = [
    "Frame",
    "current_frames",
    "describe",
    "is_backward",
    "is_user_code",
    "users_collective",
    "users_line",
    "users_line_of",
]


_NAMED_AS_IN_NCCL = frozenset(
    {"all_reduce", "all_gather", "reduce_scatter", "reduce", "broadcast", "gather", "scatter"}
    | {"all_to_all", "all_to_all_single", "all_gather_into_tensor", "reduce_scatter_tensor"}
    | {"send", "recv", "isend", "irecv", "batch_isend_irecv"}
)
"""Functions of `torch.distributed` that say what NCCL is asked for."""


def users_collective() -> str:
    """The user's line, with the function it called where another name reaches NCCL: `barrier` is an
    `all_reduce` there, and `all_gather_object` an `all_gather` of sizes and then one of bytes."""
    called: FrameType | None = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_user_code(frame.f_code.co_filename):
        if frame.f_code.co_filename.endswith(_COLLECTIVES):
            called = frame
        frame = frame.f_back
    line = users_line()
    if frame is None or called is None or called.f_code.co_name in _NAMED_AS_IN_NCCL:
        return line
    return f"{line} ({called.f_code.co_name})"


_COLLECTIVES = os.path.join("torch", "distributed", "distributed_c10d.py")


@dataclass
class Frame:
    """One frame of a Python stack; stacks are lists of them, innermost last."""

    file: str
    line: int
    function: str
    source: str | None
    is_user_code: bool


def current_frames() -> list[FrameType]:
    """The frames that led to this call, innermost last, without the agent's own.

    A CUDA backward pass runs in threads of the autograd engine, which have no Python stack of
    their own: then the frames of the thread that called `backward` come first, followed by what
    the engine called back (hooks, recomputation of checkpointed layers).
    """
    own = frames_of(sys._getframe())
    if threading.current_thread() is threading.main_thread() or _starts_in_threading(own):
        return own
    return frames_of(frame_inside_backward()) + own


def _starts_in_threading(frames: list[FrameType]) -> bool:
    """Whether this thread was started by Python (an autograd thread was not)."""
    return bool(frames) and frames[0].f_code.co_filename == threading.__file__


def describe(frames: list[FrameType]) -> list[Frame]:
    """The frames in the form of the report."""
    return [_described(frame.f_code.co_filename, frame.f_lineno or 0, frame) for frame in frames]


def _described(file: str, line: int, frame: FrameType) -> Frame:
    source = linecache.getline(file, line, frame.f_globals).strip()
    return Frame(
        file=file,
        line=line,
        function=getattr(frame.f_code, "co_qualname", frame.f_code.co_name),
        source=source or None,
        is_user_code=is_user_code(file),
    )


def users_line_of(error: BaseException) -> tuple[str, bool]:
    """The innermost line of the user's code in a traceback, formatted as by `users_line`, and
    whether the exception was raised at that line itself."""
    line, is_innermost = "", False
    traceback = error.__traceback__
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        is_innermost = is_user_code(file)
        if is_innermost or not line:
            line = f"{os.path.basename(file)}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return line or "an unknown line", is_innermost
