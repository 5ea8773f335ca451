"""Keeps checkpoints of zeros from replacing real ones, at every door scripts save through.

The doors: `torch.save`, safetensors, `torch.distributed.checkpoint`, Lightning's own writer, and
the renaming and deleting of files by which careful scripts finish a save. What may be written where
is decided in `checkpoint_paths`. Open files are left alone: what becomes of them is the script's
business.
"""

from __future__ import annotations

import functools
import os
import shutil
import sys
import time
from types import ModuleType
from typing import Any, Callable

from .checkpoint_paths import CheckpointPaths
from .guard import note_fault, quietly
from .report import RECORD
from .stacks import is_user_code

WEIGHT_SUFFIXES = (".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".distcp")


class CheckpointGuard:
    """Wraps the functions that write and read checkpoints."""

    def __init__(self, torch: Any, run_dir: str, keep_checkpoints: bool) -> None:
        self._torch = torch
        self._is_active = not keep_checkpoints
        self._started_at = time.time()
        self.paths = CheckpointPaths(run_dir)

    def install(self) -> None:
        """Guard torch's own functions and the file functions behind them."""
        if not self._is_active:
            return
        for module in (self._torch, self._torch.serialization):
            module.save = self._redirecting(module.save, 1, "f", self.paths.for_writing)
            module.load = self._redirecting(module.load, 0, "f", self.paths.for_reading)
        for name in ("rename", "replace"):
            setattr(os, name, self._guarded_rename(getattr(os, name)))
        for name in ("remove", "unlink"):
            setattr(os, name, self._guarded_remove(getattr(os, name)))
        os.mkdir = self._noted_mkdir(os.mkdir)  # also what `os.makedirs` calls
        shutil.rmtree = self._guarded_rmtree(shutil.rmtree)

    def after_import(self, module: ModuleType) -> None:
        """Guard a module that brings its own way of saving."""
        if not self._is_active:
            return
        writing, reading = self.paths.for_writing, self.paths.for_reading
        anything: Any = module
        if module.__name__ == "safetensors.torch":
            anything.save_file = self._redirecting(anything.save_file, 1, "filename", writing)
            anything.load_file = self._redirecting(anything.load_file, 0, "filename", reading)
        elif module.__name__.endswith("cloud_io"):
            anything._atomic_save = self._redirecting(anything._atomic_save, 1, "filepath", writing)
            anything._load = self._redirecting(anything._load, 0, "path_or_url", reading)
        elif module.__name__ == "torch.distributed.checkpoint.filesystem":
            self._guard_folder(anything._FileSystemWriter, self._folder_for_writing)
            self._guard_folder(anything.FileSystemReader, reading)

    def clean_up(self) -> None:
        """Delete what this process wrote."""
        self.paths.delete_made()

    def _folder_for_writing(self, path: Any) -> str:
        return self.paths.for_writing_folder(path, mark=".metadata")

    def _redirecting(
        self, original: Callable[..., Any], position: int, name: str, place: Callable[[Any], Any]
    ) -> Callable[..., Any]:
        """`original`, with the path in its argument `name` replaced by `place(path)`."""

        @functools.wraps(original)
        def wrapper(*arguments: Any, **options: Any) -> Any:
            try:
                if name in options:
                    if _is_local_path(options[name]):
                        options[name] = place(options[name])
                elif len(arguments) > position and _is_local_path(arguments[position]):
                    changed = list(arguments)
                    changed[position] = place(arguments[position])
                    arguments = tuple(changed)
            except Exception as error:
                note_fault(f"guarding {original.__name__}", error)
            return original(*arguments, **options)

        return wrapper

    def _guard_folder(self, owner: Any, place: Callable[[Any], Any]) -> None:
        """`torch.distributed.checkpoint` keeps the folder in `self.path`."""

        def adjust(storage: Any) -> None:
            if _is_local_path(getattr(storage, "path", None)):
                storage.path = type(storage.path)(place(storage.path))

        def after(original: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(original)
            def wrapper(storage: Any, *arguments: Any, **options: Any) -> Any:
                result = original(storage, *arguments, **options)
                quietly(adjust)(storage)
                return result

            return wrapper

        owner.__init__ = after(owner.__init__)
        owner.reset = after(owner.reset)

    def _guarded_rename(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def rename(src: Any, dst: Any, **options: Any) -> Any:
            source, target = src, dst
            if options or not (_is_local_path(source) and _is_local_path(target)):
                return original(source, target, **options)
            if self.paths.is_redirected(source):
                # Across file systems `os.replace` fails, and our folder may be on another.
                shutil.move(*self.paths.for_renaming(source, target))
                return None
            if self.paths.is_made(source) and os.path.isfile(source):
                source, target = self.paths.for_renaming(source, target)
                if self.paths.is_made(target):
                    return original(source, target)
                shutil.copyfile(source, target)
                os.remove(source)
                return None
            is_folder = os.path.isdir(source)
            result = original(source, target)
            if is_folder:
                quietly(self.paths.follow_folder)(source, target)
            return result

        return rename

    def _noted_mkdir(self, original: Callable[..., Any]) -> Callable[..., Any]:
        note = quietly(self.paths.note_new_folder)

        @functools.wraps(original)
        def mkdir(path: Any, *arguments: Any, **options: Any) -> None:
            original(path, *arguments, **options)
            if not options.get("dir_fd") and _is_local_path(path):
                note(path)

        return mkdir

    def _guarded_remove(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def remove(path: Any, **options: Any) -> Any:
            if not options and _is_local_path(path) and self.paths.is_redirected(path):
                return self.paths.drop_redirect(path)
            return original(path, **options)

        return remove

    def _guarded_rmtree(self, original: Any) -> Any:
        """Trainers delete the oldest checkpoint when they save a new one; a rehearsal's new one is
        worth nothing. What the user's own lines delete is deleted."""

        @functools.wraps(original)
        def rmtree(path: Any, *arguments: Any, **options: Any) -> Any:
            caller = sys._getframe(1).f_code.co_filename
            if (
                _is_local_path(path)
                and not is_user_code(caller)
                and quietly(self._holds_foreign_weights)(path)
            ):
                RECORD.note(f"a folder of real checkpoints was not deleted: {os.fspath(path)}")
                return None
            return original(path, *arguments, **options)

        return rmtree

    def _holds_foreign_weights(self, folder: Any) -> bool:
        """Whether a folder holds weights from before this rehearsal."""
        return any(
            name.endswith(WEIGHT_SUFFIXES)
            and os.stat(os.path.join(place, name)).st_mtime < self._started_at
            for place, _, names in os.walk(folder)
            for name in names
        )


def _is_local_path(value: Any) -> bool:
    """Whether a value is a path in the file system (not an open file, not an address)."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    return isinstance(value, str) and "://" not in value
