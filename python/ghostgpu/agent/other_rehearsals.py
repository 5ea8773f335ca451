"""What other rehearsals that run at the same time have written, by the lists in their folders.

The folders of all rehearsals of a machine lie beside each other (`crates/rehearse/src/run_dir.rs`).
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator

from .shared_numbers import RUN_FOLDER_PREFIX, WRITTEN_FILES


def append_line(path: str, fields: dict[str, object]) -> None:
    """Add a line to a list of written files."""
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(fields) + "\n")


class OtherRehearsals:
    """Every rehearsal but the one of this run's folder."""

    def __init__(self, run_dir: str) -> None:
        self._own = _folder_of_rehearsal(run_dir)

    def in_folder(self, folder: str) -> str | None:
        """The list of another rehearsal that works in this folder, or below it."""
        for written in self._lists():
            for path in _paths_in(written):
                if path == folder or path.startswith(folder + os.sep):
                    return written
        return None

    def take_over(self, folder: str, since: float) -> bool:
        """Leave a folder of ours to a rehearsal that works in it too; False if there is none.

        It removes what was written there since ours began.
        """
        written = self.in_folder(folder)
        if written is None:
            return False
        return _append_if_open(written, {"path": folder, "is_folder": True, "since": since})

    def _lists(self) -> Iterator[str]:
        if self._own is None:
            return
        parent = os.path.dirname(self._own)
        for name in sorted(os.listdir(parent)):
            folder = os.path.join(parent, name)
            if name.startswith(RUN_FOLDER_PREFIX) and folder != self._own:
                written = os.path.join(folder, WRITTEN_FILES)
                if _is_own_file(written):
                    yield written


def _append_if_open(path: str, fields: dict[str, object]) -> bool:
    """Add a line to another rehearsal's list; False if it was read for the last time.

    The one who reads it then removes it while it holds the lock (`written_files.rs`).
    """
    try:
        with open(path, "r+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if os.fstat(file.fileno()).st_nlink == 0:
                return False
            file.seek(0, os.SEEK_END)
            file.write(json.dumps(fields) + "\n")
            file.flush()
    except OSError:
        return False  # it has just ended
    return True


def _is_own_file(path: str) -> bool:
    """Whether a file is there, and this user's: others' rehearsals do not work with our files."""
    try:
        return os.stat(path).st_uid == os.geteuid()
    except OSError:
        return False


def _folder_of_rehearsal(run_dir: str) -> str | None:
    """The folder of a whole rehearsal; that of a fork lies in it."""
    folder = run_dir
    while os.path.basename(folder):
        if os.path.basename(folder).startswith(RUN_FOLDER_PREFIX):
            return folder
        folder = os.path.dirname(folder)
    return None


def _paths_in(written: str) -> Iterator[str]:
    try:
        with open(written, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.readlines()
    except OSError:
        return  # the rehearsal has just ended
    for line in lines:
        try:
            yield str(json.loads(line)["path"])
        except (ValueError, KeyError, TypeError):
            continue  # half a line of a process that was killed
