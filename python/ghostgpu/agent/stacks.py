"""Python stacks: where the script was when something happened, and which lines are the user's."""

from __future__ import annotations

import linecache
import os
import site
import sys
import sysconfig
import threading
from dataclasses import dataclass
from types import FrameType

_AGENT_FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep
_ESTIMATE_FOLDER = os.path.join(os.path.dirname(_AGENT_FOLDER[:-1]), "estimate") + os.sep
"""The script of `ghostgpu estimate`: what its lines are is nothing to the user."""


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
    own = _frames_of(sys._getframe())
    if threading.current_thread() is threading.main_thread() or _starts_in_threading(own):
        return own
    return _frames_of(_frame_inside_backward()) + own


def _starts_in_threading(frames: list[FrameType]) -> bool:
    """Whether this thread was started by Python (an autograd thread was not)."""
    return bool(frames) and frames[0].f_code.co_filename == threading.__file__


def _frame_inside_backward() -> FrameType | None:
    """The innermost frame of the thread that waits for the autograd engine, else the main one."""
    all_frames = sys._current_frames()
    own_id = threading.get_ident()
    for thread_id, frame in all_frames.items():
        if thread_id != own_id and any(is_backward(each) for each in _frames_of(frame)):
            return frame
    return all_frames.get(threading.main_thread().ident or 0)


def is_backward(frame: FrameType) -> bool:
    """Whether the frame is PyTorch's Python entrance to the autograd engine."""
    return os.path.join("torch", "autograd") in frame.f_code.co_filename and (
        frame.f_code.co_name in ("backward", "grad", "_engine_run_backward")
    )


def _frames_of(frame: FrameType | None) -> list[FrameType]:
    frames = []
    while frame is not None:
        if not frame.f_code.co_filename.startswith(_AGENT_FOLDER):
            frames.append(frame)
        frame = frame.f_back
    frames.reverse()
    return frames


def describe(frames: list[FrameType]) -> list[Frame]:
    """Frames as they go into the report."""
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


_user_code_by_file: dict[str, bool] = {}


def is_user_code(file: str) -> bool:
    """Whether a source file is the user's: not Python's, not an installed package's, not ours."""
    known = _user_code_by_file.get(file)
    if known is None:
        known = _user_code_by_file[file] = _is_user_code(file)
    return known


def _is_user_code(file: str) -> bool:
    if file.startswith(("<", _AGENT_FOLDER, _ESTIMATE_FOLDER)):
        return False
    path = os.path.realpath(file)
    if "site-packages" in path.split(os.sep) or "dist-packages" in path.split(os.sep):
        return False
    return not path.startswith(_library_folders())


def _library_folders() -> tuple[str, ...]:
    folders = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders.add(os.path.dirname(threading.__file__))
    # Old virtualenvs replace `site` by one without this function.
    folders.update(getattr(site, "getsitepackages", list)())
    return tuple(os.path.realpath(folder) + os.sep for folder in folders if folder)


def users_line() -> str:
    """The user's innermost line now, as `train.py:41`; the innermost line if none is theirs."""
    own_innermost = ""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_AGENT_FOLDER):
            if is_user_code(file):
                return f"{os.path.basename(file)}:{frame.f_lineno}"
            own_innermost = own_innermost or f"{os.path.basename(file)}:{frame.f_lineno}"
        frame = frame.f_back
    return _line_of_waiting_thread() or own_innermost or "an unknown line"


def users_line_of(error: BaseException) -> tuple[str, bool]:
    """The user's innermost line that an exception came through, written as by `users_line`.

    And whether the exception was raised right there, not in something that the line called.
    """
    line, is_innermost = "", False
    traceback = error.__traceback__
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        is_innermost = is_user_code(file)
        if is_innermost or not line:
            line = f"{os.path.basename(file)}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return line or "an unknown line", is_innermost


def _line_of_waiting_thread() -> str:
    if threading.current_thread() is threading.main_thread():
        return ""
    for frame in reversed(_frames_of(_frame_inside_backward())):
        if is_user_code(frame.f_code.co_filename):
            return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
    return ""
