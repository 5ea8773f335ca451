"""Decides where a checkpoint of a rehearsal may go.

Its weights are zeros, so it must not replace a real one, and must not stay:

* a file that exists already is left alone, and the new one goes to the run's private folder, from
  where the script can read it back under the name it knows;
* a file that does not exist is written where the script wants it, after its name has been put
  down in `written-files.jsonl` in the run's folder. It is deleted when the process ends, or by
  the command line if the process ended hard. So is the folder it lies in, if the rehearsal made
  that too: trainers take a `checkpoint-500` without weights for a checkpoint.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from typing import Union

from .report import RECORD

AnyPath = Union[str, "os.PathLike[str]"]

WRITTEN_FILES = "written-files.jsonl"
_REDIRECT_FOLDER = "redirected"


class CheckpointPaths:
    """The checkpoint files of this process: those it made, and those it made elsewhere."""

    def __init__(self, run_dir: str) -> None:
        self._run_dir = run_dir
        self._redirects: dict[str, str] = {}
        self._made: dict[str, None] = {}
        self._new_folders: set[str] = set()
        self._has_told = False

    def forget_parent(self) -> None:
        """In a forked child: the parent's files are the parent's to delete."""
        self._made = {}

    def note_new_folder(self, path: AnyPath) -> None:
        """The script made a folder that was not there before."""
        self._new_folders.add(os.path.abspath(os.fspath(path)))

    def for_writing(self, path: AnyPath) -> str:
        """Where to write what the script wants to write to `path`."""
        wanted = os.path.abspath(os.fspath(path))
        if wanted in self._redirects or wanted in self._made:
            return self._redirects.get(wanted, wanted)
        # A pipe, a terminal or /dev/null is nobody's checkpoint.
        if os.path.exists(wanted) and not os.path.isfile(wanted):
            return wanted
        if os.path.isfile(wanted):
            return self._redirect(wanted)
        self._list(wanted, is_folder=False)
        return wanted

    def for_writing_folder(self, path: AnyPath, *, mark: str) -> str:
        """The same for a checkpoint that is a folder, complete once it holds a file `mark`."""
        wanted = os.path.abspath(os.fspath(path))
        if wanted in self._redirects or wanted in self._made:
            return self._redirects.get(wanted, wanted)
        if os.path.exists(os.path.join(wanted, mark)):
            return self._redirect(wanted)
        self._list(wanted, is_folder=True)
        return wanted

    def for_reading(self, path: AnyPath) -> AnyPath:
        """Where to read what the script wrote to `path`; `path` itself if that is the place."""
        return self._redirects.get(os.path.abspath(os.fspath(path)), path)

    def is_redirected(self, path: AnyPath) -> bool:
        """Whether the script's file of this name is elsewhere, and the one there is not ours."""
        return os.path.abspath(os.fspath(path)) in self._redirects

    def is_made(self, path: AnyPath) -> bool:
        """Whether this process made the file (or the folder it lies in) of this name."""
        wanted = os.path.abspath(os.fspath(path))
        return any(wanted == made or wanted.startswith(made + os.sep) for made in self._made)

    def drop_redirect(self, path: AnyPath) -> None:
        """The script deleted its file: delete ours, not the one that was there before."""
        place = self._redirects.pop(os.path.abspath(os.fspath(path)))
        if os.path.isdir(place):
            shutil.rmtree(place, ignore_errors=True)
        elif os.path.exists(place):
            os.remove(place)

    def for_renaming(self, source: AnyPath, target: AnyPath) -> tuple[str, str]:
        """The names to use when the script renames `source`, a file of ours, to `target`.

        This is how careful scripts save: to a temporary name first.
        """
        old = os.path.abspath(os.fspath(source))
        place = os.fspath(self.for_reading(source))
        self._redirects.pop(old, None)
        self._made.pop(old, None)
        return place, self.for_writing(target)

    def follow_folder(self, source: AnyPath, target: AnyPath) -> None:
        """A folder was renamed: files that this process made in it have moved along."""
        old, new = os.path.abspath(os.fspath(source)), os.path.abspath(os.fspath(target))
        for path in list(self._made):
            if path == old or path.startswith(old + os.sep):
                del self._made[path]
                moved = new + path[len(old) :]
                self._list(moved, is_folder=os.path.isdir(moved))

    def delete_made(self) -> None:
        """Delete the files that this process made."""
        for path in self._made:
            if os.path.isdir(path):
                shutil.rmtree(path, ignore_errors=True)
            elif os.path.exists(path):
                os.remove(path)
        self._made.clear()

    def _redirect(self, wanted: str) -> str:
        self._tell(wanted)
        # The digest tells files of the same name apart.
        digest = hashlib.sha256(wanted.encode("utf-8", "surrogateescape")).hexdigest()[:12]
        folder = os.path.join(self._run_dir, _REDIRECT_FOLDER, f"{os.getpid()}-{digest}")
        os.makedirs(folder, exist_ok=True)
        self._redirects[wanted] = os.path.join(folder, os.path.basename(wanted))
        return self._redirects[wanted]

    def _list(self, wanted: str, *, is_folder: bool) -> None:
        self._tell(wanted)
        folder = os.path.dirname(wanted)
        # Only the folder itself, not the ones above it: they may hold the script's log.
        if not is_folder and folder in self._new_folders and folder not in self._made:
            self._list(folder, is_folder=True)
        line = json.dumps({"path": wanted, "is_folder": is_folder, "pid": os.getpid()})
        with open(os.path.join(self._run_dir, WRITTEN_FILES), "a", encoding="utf-8") as file:
            file.write(line + "\n")
        self._made[wanted] = None

    def _tell(self, wanted: str) -> None:
        if self._has_told:
            return
        self._has_told = True
        sentence = (
            "checkpoints of a rehearsal hold zeros: existing ones are left as they are, new ones "
            f"are deleted at the end (the first: {os.path.basename(wanted)})"
        )
        RECORD.note(sentence)
        sys.stderr.write(f"ghostgpu: {sentence}\n\nhint: --keep-checkpoints writes them for good\n")
