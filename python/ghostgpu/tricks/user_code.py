"""Which lines are the user's: not Python's, not an installed package's, not ours."""

from __future__ import annotations

import functools
import itertools
import os
import site
import sys
import sysconfig
import threading
from types import FrameType

_PACKAGE_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_WATCHING_FOLDERS = tuple(os.path.join(_PACKAGE_FOLDER, name, "") for name in ("agent", "tricks"))
"""Our own code between a script and torch, which belongs to neither."""

_MOST_ENTRIES = 10_000

_user_code_by_file: dict[str, bool] = {}


def is_own(file: str) -> bool:
    """Whether a source file is our own code between the script and torch."""
    return file.startswith(_WATCHING_FOLDERS)


def is_user_code(file: str) -> bool:
    """Whether a source file is the user's: not Python's, not an installed package's, not ours."""
    known = _user_code_by_file.get(file)
    if known is None:
        known = _user_code_by_file[file] = _is_user_code(file)
    return known


def _is_user_code(file: str) -> bool:
    # The script of `ghostgpu estimate` is ours too: its lines mean nothing to the user.
    if file.startswith("<") or file.startswith(_PACKAGE_FOLDER):
        return False
    path = os.path.realpath(file)
    if "site-packages" in path.split(os.sep) or "dist-packages" in path.split(os.sep):
        return False
    return not path.startswith(_library_folders()) and not _was_installed(path)


def _was_installed(path: str) -> bool:
    """Whether pip put a file into a folder that Python imports from (`pip install --target`)."""
    for entry in sys.path:
        folder = os.path.join(os.path.realpath(entry), "")
        if path.startswith(folder):
            name = path[len(folder) :].split(os.sep, 1)[0]
            if name in _installed_in(folder):
                return True
    return False


@functools.cache
def _installed_in(folder: str) -> frozenset[str]:
    """The entries of a folder that belong to installed packages, according to their records.

    The user's own files may be beside them.
    """
    names: set[str] = set()
    try:
        with os.scandir(folder) as found:
            # A folder of data may have any number of files.
            entries = [it.name for it in itertools.islice(found, _MOST_ENTRIES)]
    except OSError:
        return frozenset()
    for entry in entries:
        if entry.endswith(".dist-info"):
            names.update(_recorded(os.path.join(folder, entry, "RECORD")))
    return frozenset(names)


def _recorded(record: str) -> set[str]:
    """The first components of the paths that pip recorded for a package."""
    try:
        with open(record, encoding="utf-8", errors="replace") as lines:
            return {line.split(",", 1)[0].split("/", 1)[0] for line in lines}
    except OSError:
        return set()


def _library_folders() -> tuple[str, ...]:
    folders = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders.add(os.path.dirname(threading.__file__))
    # Old virtualenvs replace `site` by one without this function.
    folders.update(getattr(site, "getsitepackages", list)())
    return tuple(os.path.realpath(folder) + os.sep for folder in folders if folder)


def users_line() -> str:
    """The innermost line of the user's code, as `train.py:41`; else the innermost line of all."""
    own_innermost = ""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not is_own(file):
            if is_user_code(file):
                return f"{os.path.basename(file)}:{frame.f_lineno}"
            own_innermost = own_innermost or f"{os.path.basename(file)}:{frame.f_lineno}"
        frame = frame.f_back
    return _line_of_waiting_thread() or own_innermost or "an unknown line"


def _line_of_waiting_thread() -> str:
    if threading.current_thread() is threading.main_thread():
        return ""
    for frame in reversed(frames_of(frame_inside_backward())):
        if is_user_code(frame.f_code.co_filename):
            return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
    return ""


def frames_of(frame: FrameType | None) -> list[FrameType]:
    """A frame and its callers, innermost last, without our own."""
    frames = []
    while frame is not None:
        if not is_own(frame.f_code.co_filename):
            frames.append(frame)
        frame = frame.f_back
    frames.reverse()
    return frames


def frame_inside_backward() -> FrameType | None:
    """The innermost frame of the thread that waits for the autograd engine, else the main one."""
    others = sys._current_frames()
    # Through the dictionary, this function's own frame would refer to itself and keep every tensor
    # of its callers alive until the next garbage collection.
    others.pop(threading.get_ident(), None)
    for frame in others.values():
        if any(is_backward(each) for each in frames_of(frame)):
            return frame
    return others.get(threading.main_thread().ident or 0)


def is_backward(frame: FrameType) -> bool:
    """Whether the frame is PyTorch's Python entry point to the autograd engine."""
    return os.path.join("torch", "autograd") in frame.f_code.co_filename and (
        frame.f_code.co_name in ("backward", "grad", "_engine_run_backward")
    )
