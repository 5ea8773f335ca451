"""Decides where a rehearsal may write a checkpoint, and which of the user's files are protected.

A rehearsal's checkpoint holds zeros, so it must neither replace a real one nor be left behind:

* a file that already exists is left alone. The new one goes to the run folder, where the script
  can read it back under the name it knows;
* a file that does not exist is written where the script wants it, after its name has been added to
  `written-files.jsonl` in the run folder. The command line deletes it when the whole job has
  ended: another rank, or the next line of a shell script, may want to read it. A fork deletes what
  it wrote itself. So is the folder deleted that it is in, if the rehearsal created it: trainers
  take a `checkpoint-500` without weights for a checkpoint.

Two rehearsals in one folder do not disturb each other: a name belongs to the one that creates the
file first, and the other is redirected; a folder that another rehearsal may use is left to it.

Weights from before the rehearsal are neither deleted nor renamed, even if the script asks for it:
scripts make room for a new checkpoint that way, and here the new one is worthless.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
from collections.abc import Iterator
from typing import Union

from ..report import RECORD
from ..shared_numbers import WRITTEN_FILES
from .other_rehearsals import (
    OtherRehearsals,
    append_line,
    is_in,
    is_of_whole_rehearsal,
    lines_of,
)
from .value_files import is_weights

AnyPath = Union[str, "os.PathLike[str]"]

MAX_DELETIONS = 1000
_REDIRECT_FOLDER = "redirected"

# The originals: `file_hooks` replaces these functions in `os`.
_remove, _rmdir, _mkdir = os.remove, os.rmdir, os.mkdir


def absolute(path: AnyPath) -> str:
    """The form in which paths are compared here."""
    return os.path.abspath(os.fspath(path))


class CheckpointPaths:
    """The checkpoint files of this process: those it created, and those that were redirected."""

    def __init__(self, run_dir: str, started_at: float) -> None:
        self._run_dir = run_dir
        self._started_at = started_at
        self._redirects: dict[str, str] = {}
        self._made: dict[str, None] = {}
        self._new_folders: set[str] = set()
        self._gone: dict[str, int] = {}
        self._has_told = False
        self._others = OtherRehearsals(run_dir)

    def forget_parent(self) -> None:
        """Called in a forked child: the parent deletes its own files."""
        self._made = {}

    def move_to(self, run_dir: str, started_at: float) -> None:
        """Called in a copy of the script that continues as another rehearsal."""
        self._run_dir = run_dir
        self._started_at = started_at
        self._others = OtherRehearsals(run_dir)
        self.forget_parent()

    def note_new_folder(self, path: AnyPath) -> None:
        """The script created a folder."""
        self._new_folders.add(absolute(path))

    def note_removed(self, path: AnyPath) -> None:
        """The script deleted a file or a folder: the name is free for the next creator."""
        removed = absolute(path)
        if os.path.lexists(removed):
            return  # a tree that could not be deleted completely
        deleted = [each for each in self._made if is_in(each, removed)]
        for made in deleted:
            del self._made[made]
        if deleted:
            self._write_down({"path": removed, "is_deleted": True})
        self._new_folders = {each for each in self._new_folders if not is_in(each, removed)}

    def is_private(self, path: AnyPath) -> bool:
        """Whether a file is in the run folder, which is removed as a whole."""
        return absolute(path).startswith(self._run_dir + os.sep)

    def for_writing(self, path: AnyPath, *, is_claimed: bool = True) -> str:
        """Where to write what the script wants to write to `path`.

        The file is created immediately, so that other rehearsals see it, unless the script itself
        insists on creating it (mode `x`).
        """
        wanted = absolute(path)
        if self.is_borrowed(wanted):
            del self._redirects[wanted]
        if wanted in self._redirects or wanted in self._made or self.is_private(wanted):
            return self._redirects.get(wanted, wanted)
        # A pipe, a terminal or /dev/null is not a checkpoint.
        if os.path.exists(wanted) and not os.path.isfile(wanted):
            return wanted
        # `lexists`: writing to a dangling link would create a file in another place.
        is_taken = os.path.lexists(wanted) or (is_claimed and not _make_file(wanted))
        if is_taken and not self._was_left_to_us(wanted):
            return self._redirect(wanted)
        self._list(wanted, is_folder=False)
        return wanted

    def for_writing_folder(self, path: AnyPath) -> str:
        """The same for a checkpoint that is a folder."""
        wanted = absolute(path)
        if wanted in self._redirects or wanted in self._made:
            return self._redirects.get(wanted, wanted)
        # Its files belong to the user, or the script keeps something there.
        is_taken = os.path.isdir(wanted) and (
            os.listdir(wanted) or self._others.have_written_in(wanted)
        )
        if is_taken and not self._was_left_to_us(wanted):
            return self._redirect(wanted)
        with contextlib.suppress(OSError):  # it exists, or the script's own attempt will fail
            _mkdir(wanted)
        self._list(wanted, is_folder=True)
        return wanted

    def for_reading(self, path: AnyPath) -> AnyPath:
        """Where to read what the script wrote to `path`; `path` itself if that is the place."""
        if not self._redirects:
            return path
        return self._redirects.get(absolute(path), path)

    def is_redirected(self, path: AnyPath) -> bool:
        """Whether what the script wrote to this path is elsewhere."""
        return absolute(path) in self._redirects

    def is_made(self, path: AnyPath) -> bool:
        """Whether this process created this file, or a folder that contains it."""
        wanted = absolute(path)
        return any(is_in(wanted, made) for made in self._made)

    def drop_redirect(self, path: AnyPath) -> None:
        """The script deletes a redirected file: delete ours, not the user's file of that name."""
        wanted = absolute(path)
        is_borrowed = self.is_borrowed(wanted)
        place = self._redirects.pop(wanted)
        self._gone[wanted] = 1
        if is_borrowed:
            return
        if os.path.isdir(place):
            shutil.rmtree(place, ignore_errors=True)
        elif os.path.exists(place):
            _remove(place)

    def for_renaming(self, source: AnyPath, target: AnyPath) -> tuple[str, str]:
        """The paths to use when the script renames `source`, which it wrote itself, to `target`.

        This is how careful scripts save: to a temporary name first.
        """
        old = absolute(source)
        place = os.fspath(self.for_reading(source))
        self._redirects.pop(old, None)
        self._made.pop(old, None)
        return place, self.for_writing(target)

    def follow_folder(self, source: AnyPath, target: AnyPath) -> None:
        """A folder was renamed: update the paths of files that this process created in it."""
        old, new = absolute(source), absolute(target)
        for path in list(self._made):
            if is_in(path, old):
                del self._made[path]
                moved = new + path[len(old) :]
                self._list(moved, is_folder=os.path.isdir(moved))

    def holds_foreign_weights(self, path: AnyPath) -> bool:
        """Whether this is a checkpoint, or a folder with one in it, from before the rehearsal."""
        wanted = absolute(path)
        if os.path.islink(wanted):
            return False  # deleting a link leaves its target, and a link is easy to recreate
        if os.path.isdir(wanted):
            return any(map(self._is_foreign_weights, _files_below(wanted)))
        return self._is_foreign_weights(wanted)

    def lies_beside_foreign_weights(self, path: AnyPath) -> bool:
        """Whether a file shares its folder with weights from before the rehearsal."""
        folder = os.path.dirname(absolute(path))
        return os.path.isdir(folder) and any(
            self._is_foreign_weights(os.path.join(folder, name)) for name in os.listdir(folder)
        )

    def pretend_deleted(self, path: AnyPath, what_for: str) -> None:
        """The script deletes a real file: pretend that it is gone.

        The script may find the file and delete it again, but only `MAX_DELETIONS` times: some
        scripts loop until it is gone.
        """
        wanted = absolute(path)
        self._gone[wanted] = self._gone.get(wanted, 0) + 1
        if self._gone[wanted] > MAX_DELETIONS:
            raise PermissionError(1, os.strerror(1), os.fspath(path))
        RECORD.note(f"a real checkpoint was not {what_for}: {wanted}")

    def forget_deletion(self, path: AnyPath) -> bool:
        """The script creates this path again; returns whether it believes to have deleted it."""
        wanted = absolute(path)
        return self._gone.pop(wanted, None) is not None

    def keep_under_new_name(self, source: AnyPath, target: AnyPath) -> None:
        """The script renames a real checkpoint: leave it in place, but read it by the new name."""
        old = absolute(source)
        place = self._redirects.pop(old, old)
        self.pretend_deleted(source, "renamed")
        self._redirects[absolute(target)] = place

    def is_borrowed(self, path: AnyPath) -> bool:
        """Whether reading `path` leads to a real file of another name."""
        place = self._redirects.get(absolute(path))
        return place is not None and not self.is_private(place)

    def _was_left_to_us(self, wanted: str) -> bool:
        """Whether an ended process of this rehearsal made it, and not the user or another rank."""
        is_left = False
        for line in lines_of(os.path.join(self._run_dir, WRITTEN_FILES)):
            if line["path"] == wanted and "pid" in line:
                is_left = not os.path.exists(f"/proc/{line['pid']}")
            elif line.get("is_deleted") and is_in(wanted, line["path"]):
                is_left = False
        return is_left

    def clean_up(self) -> None:
        """At the end of this process: delete what it wrote, unless the command line does."""
        if not is_of_whole_rehearsal(self._run_dir):
            self.delete_made()

    def delete_made(self) -> None:
        """Delete the files that this process made."""
        for path in reversed(list(self._made)):
            if os.path.isdir(path) and not os.path.islink(path):
                # Otherwise the command line removes it, once no other rehearsal needs it.
                if not self._others.may_write_in(path):
                    self._empty(path)
            elif os.path.lexists(path):
                _remove(path)
        self._made.clear()

    def _empty(self, folder: str) -> None:
        """Delete a folder and what was written into it since the rehearsal began."""
        for place, folders, names in os.walk(folder, topdown=False):
            for path in (os.path.join(place, name) for name in names):
                # The script may have moved real files here; they keep their modification time.
                if not self._is_foreign(path):
                    _remove(path)
            for name in folders:
                _remove_if_empty(os.path.join(place, name))
        _remove_if_empty(folder)

    def _is_foreign_weights(self, path: str) -> bool:
        return is_weights(path) and self._is_foreign(path)

    def _is_foreign(self, path: str) -> bool:
        """Whether a file is from before the rehearsal."""
        try:
            return os.path.isfile(path) and os.stat(path).st_mtime < self._started_at
        except OSError:
            return False  # it has just been deleted

    def _redirect(self, wanted: str) -> str:
        self._tell(wanted)
        # Another rehearsal may have created the file first, in a folder that this one created.
        self._list_folder_of(wanted)
        # The digest distinguishes files of the same name in different folders.
        digest = hashlib.sha256(wanted.encode("utf-8", "surrogateescape")).hexdigest()[:12]
        folder = os.path.join(self._run_dir, _REDIRECT_FOLDER, f"{os.getpid()}-{digest}")
        os.makedirs(folder, exist_ok=True)
        self._redirects[wanted] = os.path.join(folder, os.path.basename(wanted))
        self._write_down({"path": wanted, "is_redirected": True})
        return self._redirects[wanted]

    def _list(self, wanted: str, *, is_folder: bool) -> None:
        self._tell(wanted)
        if not is_folder:
            self._list_folder_of(wanted)
        self._write_down({"path": wanted, "is_folder": is_folder, "pid": os.getpid()})
        self._made[wanted] = None

    def _list_folder_of(self, wanted: str) -> None:
        folder = os.path.dirname(wanted)
        if folder not in self._new_folders or folder in self._made:
            return
        self._list(folder, is_folder=True)
        # Those above it may hold the script's log: they are removed only if nothing is left there.
        above = os.path.dirname(folder)
        while above in self._new_folders:
            self._write_down({"path": above, "is_folder": False})
            above = os.path.dirname(above)

    def _write_down(self, fields: dict[str, object]) -> None:
        append_line(os.path.join(self._run_dir, WRITTEN_FILES), fields)

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


def _make_file(path: str) -> bool:
    """Create an empty file; False if it already exists."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except FileExistsError:
        return False
    except OSError:
        pass  # the script's own write will fail with the reason
    return True


def _files_below(folder: str) -> Iterator[str]:
    for place, _, names in os.walk(folder):
        for name in names:
            yield os.path.join(place, name)


def _remove_if_empty(folder: str) -> None:
    # It may contain files of the user's, or be a link.
    with contextlib.suppress(OSError):
        _rmdir(folder)
