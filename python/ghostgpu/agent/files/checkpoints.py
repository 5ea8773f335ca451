"""Keeps checkpoints of zeros from replacing real ones, however a script saves them.

Hooked are `torch.save` and its counterparts for scripted and exported models, safetensors,
`torch.distributed.checkpoint`, Lightning's own writer, and Python's file functions
(`file_hooks`). `checkpoint_paths` decides what may be written where.
"""

from __future__ import annotations

import functools
import os
from types import ModuleType
from typing import Any, Callable

from ..guard import note_fault, quietly
from ..session import Session
from .checkpoint_paths import CheckpointPaths
from .file_hooks import FileHooks, is_local_path
from .sparse_file import SparseFile


class CheckpointGuard:
    """Wraps the functions that write and read checkpoints."""

    def __init__(self, torch: Any, session: Session) -> None:
        self._torch = torch
        self._is_active = not session.keep_checkpoints
        self.paths = CheckpointPaths(session.run_dir, session.started_at)
        self.on_save: Callable[[], object] = lambda: None
        """Called before a checkpoint is written."""

    def install(self) -> None:
        """Guard torch's own functions and the file functions behind them."""
        torch = self._torch
        writing, reading = self.paths.for_writing, self.paths.for_reading
        for module in (torch, torch.serialization):
            module.save = self._redirecting(self._sparse(module.save), 1, "f", writing)
            module.load = self._redirecting(module.load, 0, "f", reading)
        # These open the file by its name in C++.
        for module in (torch.jit, torch.export):
            module.save = self._redirecting(module.save, 1, "f", writing)
            module.load = self._redirecting(module.load, 0, "f", reading)
        scripted = torch.jit.RecursiveScriptModule
        scripted.save = self._redirecting(scripted.save, 1, "f", writing)
        if self._is_active:
            FileHooks(torch, self.paths).install()

    def after_import(self, module: ModuleType) -> None:
        """Guard the save and load functions of a module that was just imported."""
        writing, reading = self.paths.for_writing, self.paths.for_reading
        anything: Any = module
        if module.__name__ == "safetensors.torch":
            anything.save_file = self._redirecting(anything.save_file, 1, "filename", writing)
            anything.load_file = self._redirecting(anything.load_file, 0, "filename", reading)
        elif module.__name__.endswith("cloud_io"):
            anything._atomic_save = self._redirecting(anything._atomic_save, 1, "filepath", writing)
            anything._load = self._redirecting(anything._load, 0, "path_or_url", reading)
        elif module.__name__ == "torch.distributed.checkpoint.filesystem":
            self._guard_folder(anything._FileSystemWriter, self.paths.for_writing_folder)
            self._guard_folder(anything.FileSystemReader, reading)

    def clean_up(self) -> None:
        """Delete what this process wrote, unless others may want it."""
        self.paths.clean_up()

    def _sparse(self, save: Callable[..., Any]) -> Callable[..., Any]:
        """`torch.save`, writing sparse files in which zeros take no disk space."""

        @functools.wraps(save)
        def wrapper(obj: Any, f: Any, *arguments: Any, **options: Any) -> Any:
            # The older format needs a real file descriptor.
            is_zip = options.get("_use_new_zipfile_serialization", True) and len(arguments) < 3
            if not (self._is_active and is_zip and is_local_path(f)):
                return save(obj, f, *arguments, **options)
            file = SparseFile(os.fspath(f))
            try:
                return save(obj, file, *arguments, **options)
            finally:
                file.close()

        return wrapper

    def _redirecting(
        self, original: Callable[..., Any], position: int, name: str, place: Callable[[Any], Any]
    ) -> Callable[..., Any]:
        """`original`, with the path in its argument `name` replaced by `place(path)`."""

        @functools.wraps(original)
        def wrapper(*arguments: Any, **options: Any) -> Any:
            if place in (self.paths.for_writing, self.paths.for_writing_folder):
                quietly(self.on_save)()
            if not self._is_active:
                return original(*arguments, **options)
            try:
                if name in options:
                    if is_local_path(options[name]):
                        options[name] = place(options[name])
                elif len(arguments) > position and is_local_path(arguments[position]):
                    changed = list(arguments)
                    changed[position] = place(arguments[position])
                    arguments = tuple(changed)
            except Exception as error:
                note_fault(f"guarding {original.__name__}", error)
            return original(*arguments, **options)

        return wrapper

    def _guard_folder(self, owner: Any, place: Callable[[Any], Any]) -> None:
        """Replace the folder that `torch.distributed.checkpoint` keeps in `self.path`."""

        def adjust(storage: Any) -> None:
            if place == self.paths.for_writing_folder:
                self.on_save()
            if self._is_active and is_local_path(getattr(storage, "path", None)):
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
