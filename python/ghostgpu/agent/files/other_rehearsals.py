"""What other rehearsals that run at the same time have written, read from their run folders.

The run folders of a machine are all in one place (`crates/rehearse/src/run_dir.rs`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from ..shared_numbers import RUN_FOLDER_PREFIX, WRITTEN_FILES


def append_line(path: str, fields: dict[str, object]) -> None:
    """Add a line to a list of written files."""
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(fields) + "\n")


class OtherRehearsals:
    """All rehearsals on this machine except this one."""

    def __init__(self, run_dir: str) -> None:
        self._own = _folder_of_rehearsal(run_dir)

    def have_written_in(self, folder: str) -> bool:
        """Whether another rehearsal has written into a folder, or below it."""
        return any(
            is_in(line["path"], folder) for line in self._lines() if not line.get("is_workplace")
        )

    def may_write_in(self, folder: str) -> bool:
        """Whether another rehearsal may write there next: it has before, or it runs in a folder
        above this one. Its script may have checked that the folder exists."""
        return any(
            is_in(line["path"], folder)
            or (bool(line.get("is_workplace")) and is_in(folder, line["path"]))
            for line in self._lines()
        )

    def _lines(self) -> Iterator[dict[str, Any]]:
        if self._own is None:
            return
        parent = os.path.dirname(self._own)
        for name in sorted(os.listdir(parent)):
            folder = os.path.join(parent, name)
            if name.startswith(RUN_FOLDER_PREFIX) and folder != self._own:
                written = os.path.join(folder, WRITTEN_FILES)
                if _is_own_file(written):
                    yield from lines_of(written)


def is_in(path: str, folder: str) -> bool:
    """Whether `path` is `folder` or below it."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _is_own_file(path: str) -> bool:
    """Whether a file exists and belongs to this user: other users' rehearsals do not matter."""
    try:
        return os.stat(path).st_uid == os.geteuid()
    except OSError:
        return False


def _folder_of_rehearsal(run_dir: str) -> str | None:
    """The run folder of a whole rehearsal, which contains those of its forks."""
    folder = run_dir
    while os.path.basename(folder):
        if os.path.basename(folder).startswith(RUN_FOLDER_PREFIX):
            return folder
        folder = os.path.dirname(folder)
    return None


def is_of_whole_rehearsal(run_dir: str) -> bool:
    """Whether the command line reads the list in this folder; a fork has a folder inside."""
    return _folder_of_rehearsal(run_dir) == run_dir


def lines_of(written: str) -> Iterator[dict[str, Any]]:
    """The lines of a list of written files; none if it is not there."""
    try:
        with open(written, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.readlines()
    except OSError:
        return  # the rehearsal has just ended
    for text in lines:
        try:
            line = json.loads(text)
            if isinstance(line["path"], str):
                yield line
        except (ValueError, KeyError, TypeError):
            continue  # half a line of a process that was killed
