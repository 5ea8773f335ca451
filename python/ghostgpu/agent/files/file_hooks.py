"""Wraps Python's own file functions to protect checkpoints.

Scripts write weights with `open` and `pickle`, copy the best ones with `shutil`, rename the last
ones to make room, and delete old ones. `value_files` decides which files are concerned, and
`checkpoint_paths` what happens to them.
"""

from __future__ import annotations

import builtins
import functools
import io
import os
import pathlib
import shutil
import sys
from typing import Any, Callable

from ..guard import note_fault, quietly
from .checkpoint_paths import CheckpointPaths
from .value_files import describes_weights, is_curve, is_weights, may_hold_values

Function = Callable[..., Any]


def is_local_path(value: Any) -> bool:
    """Whether a value is a path in the file system (not an open file, not an address)."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    return isinstance(value, str) and "://" not in value


_REAL_FILES = (
    # Memory snapshots: their contents are real, so they are not redirected.
    ("_snapshot", os.path.join("torch", "cuda", "memory.py")),
    # The exception that ended a spawned process, for its parent to raise.
    ("_wrap", os.path.join("torch", "multiprocessing", "spawn.py")),
)
"""Functions of PyTorch, by the end of their names, whose pickles hold no values from the card."""


def _is_real_file_of_pytorchs() -> bool:
    """Whether PyTorch writes a file whose contents are real."""
    code = sys._getframe(4).f_code  # the caller of `open`
    return any(
        code.co_name.endswith(name) and code.co_filename.endswith(file)
        for name, file in _REAL_FILES
    )


class FileHooks:
    """Wraps the functions that open, copy, rename and delete files."""

    def __init__(self, torch: Any, paths: CheckpointPaths) -> None:
        self._torch = torch
        self._paths = paths

    def install(self) -> None:
        """Wrap the functions under every name by which scripts and libraries call them."""
        builtins.open = io.open = self._guarded_open(io.open)
        for name in ("copymode", "copystat"):
            setattr(shutil, name, self._guarded_copy_of_state(getattr(shutil, name)))
        for name in ("rename", "replace"):
            self._put_in_os(name, self._guarded_rename(getattr(os, name)))
        for name in ("remove", "unlink"):
            self._put_in_os(name, self._guarded_remove(getattr(os, name)))
        self._put_in_os("mkdir", self._noted_mkdir(os.mkdir))  # also what `os.makedirs` calls
        shutil.rmtree = self._guarded_rmtree(shutil.rmtree)

    def _put_in_os(self, name: str, function: Function) -> None:
        setattr(os, name, function)
        # Up to Python 3.10, `pathlib` calls the functions that `os` had when it was imported.
        accessor = getattr(pathlib, "_NormalAccessor", None)
        if accessor is not None and hasattr(accessor, name):
            setattr(accessor, name, staticmethod(function))

    def _guarded_open(self, original: Function) -> Any:
        def place(file: Any, mode: Any) -> Any:
            if not isinstance(mode, str) or not is_local_path(file):
                return file
            if "w" in mode or "a" in mode or "x" in mode:
                return self._place_for_writing(file, mode)
            return self._paths.for_reading(file)

        @functools.wraps(original)
        def open(file: Any, mode: Any = "r", *arguments: Any, **options: Any) -> Any:
            # Every file that Python opens comes through here, so irrelevant ones leave early.
            if isinstance(file, (str, os.PathLike)):
                try:
                    file = place(file, mode)
                except Exception as error:
                    note_fault("guarding open", error)
            return original(file, mode, *arguments, **options)

        return open

    def _place_for_writing(self, file: Any, mode: str) -> Any:
        paths, path = self._paths, os.fspath(file)
        if paths.is_redirected(path):
            return paths.for_writing(path)
        is_there = os.path.isfile(path)
        if "a" in mode and is_there:
            return file  # a log, or one that this script has opened before
        if _is_real_file_of_pytorchs():
            return file
        if is_curve(path):
            return paths.for_writing(path)  # of zeros, beside the user's real ones
        if may_hold_values(path) and self._torch.cuda.is_initialized():
            if "x" in mode:
                return file if is_there else paths.for_writing(path, is_claimed=False)
            return paths.for_writing(path)
        if is_weights(path) and paths.holds_foreign_weights(path):
            return paths.for_writing(path)
        if describes_weights(path) and paths.lies_beside_foreign_weights(path):
            return paths.for_writing(path)
        return file

    def _guarded_copy_of_state(self, original: Function) -> Function:
        """`copymode` and `copystat`, which `shutil.copy` and `copy2` call after copying."""

        @functools.wraps(original)
        def copy_state(src: Any, dst: Any, **options: Any) -> Any:
            if is_local_path(src) and is_local_path(dst):
                src, dst = self._paths.for_reading(src), self._paths.for_reading(dst)
            return original(src, dst, **options)

        return copy_state

    def _guarded_rename(self, original: Function) -> Function:
        paths = self._paths

        @functools.wraps(original)
        def rename(src: Any, dst: Any, **options: Any) -> Any:
            source, target = src, dst
            if options or not (is_local_path(source) and is_local_path(target)):
                return original(source, target, **options)
            if paths.is_borrowed(source):
                return paths.keep_under_new_name(source, target)
            if paths.is_redirected(source):
                # `os.replace` fails across file systems, and the run folder may be on another one.
                shutil.move(*paths.for_renaming(source, target))
                return None
            if paths.is_made(source) and os.path.isfile(source):
                source, target = paths.for_renaming(source, target)
                if paths.is_made(target):
                    return original(source, target)
                shutil.copyfile(source, target)
                os.remove(source)
                return None
            if quietly(paths.holds_foreign_weights)(source):
                if not os.path.isdir(os.path.dirname(os.path.abspath(target))):
                    return original(source, target)  # fails, as it must
                return paths.keep_under_new_name(source, target)
            is_folder = os.path.isdir(source)
            result = original(source, target)
            if is_folder:
                quietly(paths.follow_folder)(source, target)
            return result

        return rename

    def _noted_mkdir(self, original: Function) -> Function:
        note = quietly(self._paths.note_new_folder)

        @functools.wraps(original)
        def mkdir(path: Any, *arguments: Any, **options: Any) -> None:
            is_local = not options.get("dir_fd") and is_local_path(path)
            try:
                original(path, *arguments, **options)
            except FileExistsError:
                if not (is_local and self._paths.forget_deletion(path)):
                    raise
                return
            if is_local:
                note(path)

        return mkdir

    def _guarded_remove(self, original: Function) -> Function:
        paths = self._paths

        @functools.wraps(original)
        def remove(path: Any, **options: Any) -> Any:
            if not options and is_local_path(path):
                if paths.is_redirected(path):
                    return paths.drop_redirect(path)
                if is_weights(os.fspath(path)) and quietly(paths.holds_foreign_weights)(path):
                    return paths.pretend_deleted(path, "deleted")
                original(path)
                quietly(paths.note_removed)(path)
                return None
            return original(path, **options)

        return remove

    def _guarded_rmtree(self, original: Any) -> Any:
        paths = self._paths

        @functools.wraps(original)
        def rmtree(path: Any, *arguments: Any, **options: Any) -> Any:
            if is_local_path(path) and quietly(paths.holds_foreign_weights)(path):
                return paths.pretend_deleted(path, "deleted")
            original(path, *arguments, **options)
            if is_local_path(path):
                quietly(paths.note_removed)(path)
            return None

        return rmtree
