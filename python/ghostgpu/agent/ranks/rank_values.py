"""Known values that ranks send each other, exchanged through files in the run folder.

Each rank appends to its own file for each process group: the number of the call and the known
values that it contributes, piece by piece. Other ranks read it when a result is needed, after all
ranks have made the call (the stand-in library waits for that, and says what is wrong if one never
does). Values for ranks on other machines go through the job's store. Independent of torch.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import struct
import threading
import time
from typing import Any, BinaryIO, Callable, Optional

from ..shared_numbers import RANK_LEFT_PREFIX, RANKS_FOLDER

Pieces = list[Optional[bytes]]
"""What one rank contributes to a call; None where it is not known."""

PATIENCE_SECONDS = 5.0
"""Without NCCL, nothing has waited for the other ranks yet, so they may be a little late."""

ELSEWHERE_PATIENCE_SECONDS = 120.0
"""Nothing has waited for ranks on other machines before their values are needed."""

LEFT_KEY = "ghostgpu: a machine has left"
"""Set in the store when the rehearsal has ended the ranks of a machine."""

_KEPT_CALLS = 64
"""How many of a rank's latest calls stay in the store: other ranks may be behind."""

_HEAD = struct.Struct("<QQ")
"""The number of a call and the length of what follows."""


class _Reader:
    """Reads the file of one rank."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._next = 0
        self._places: dict[int, tuple[int, int]] = {}

    def find(self, number: int) -> Pieces | None:
        """What the rank contributed to a call; None if the file does not have it yet."""
        if self._file is None:
            try:
                self._file = open(self._path, "rb")  # noqa: SIM115 (it stays open)
            except OSError:
                return None
        if number not in self._places:
            self._read_on(self._file)
        place = self._places.get(number)
        if place is None:
            return None
        self._file.seek(place[0])
        pieces: Pieces = marshal.loads(self._file.read(place[1]))
        return pieces

    def _read_on(self, file: BinaryIO) -> None:
        end = os.fstat(file.fileno()).st_size
        while self._next + _HEAD.size <= end:
            file.seek(self._next)
            number, length = _HEAD.unpack(file.read(_HEAD.size))
            start = self._next + _HEAD.size
            if start + length > end:
                return  # it is being written
            self._places[number] = (start, length)
            self._next = start + length


class Channel:
    """The calls of one process group, or the messages from one rank to another."""

    def __init__(
        self,
        folder: str,
        name: str,
        rank: int,
        wait: Callable[[], object],
        store: Callable[[], Any] = lambda: None,
    ) -> None:
        self._base = os.path.join(folder, "values-" + hashlib.sha1(name.encode()).hexdigest()[:16])
        self.rank = rank
        self._wait = wait
        self._store = store
        self._calls = 0
        self._own: int | None = None
        self._readers: dict[int, _Reader] = {}
        self._lock = threading.Lock()

    def post(self, pieces: Pieces) -> int:
        """Write what this rank contributes to its next call; returns the call's number."""
        with self._lock:
            number = self._calls
            self._calls += 1
            if self._own is None:
                flags = os.O_CREAT | os.O_APPEND | os.O_WRONLY
                self._own = os.open(self._path(self.rank), flags, 0o600)
            content = marshal.dumps(pieces)
            os.write(self._own, _HEAD.pack(number, len(content)) + content)
            return number

    def post_elsewhere(self, number: int, pieces: Pieces) -> None:
        """Make a call's values available to ranks on other machines."""
        store = self._store()
        store.set(self._key(self.rank, number), marshal.dumps(pieces))
        if number >= _KEPT_CALLS:
            store.delete_key(self._key(self.rank, number - _KEPT_CALLS))

    def fetch_from_elsewhere(self, rank: int, number: int) -> Pieces:
        """What a rank on another machine contributed to a call; empty if it is not available."""
        store, key = self._store(), self._key(rank, number)
        ends = time.monotonic() + ELSEWHERE_PATIENCE_SECONDS
        try:
            # Polled: a blocking wait would keep other threads of this process from the store.
            while not store.check([key]):
                if time.monotonic() > ends or store.check([LEFT_KEY]):
                    return []
                time.sleep(0.01)
            pieces: Pieces = marshal.loads(store.get(key))
        except RuntimeError:
            return []  # the machine that hosts the store has finished
        return pieces

    def _key(self, rank: int, number: int) -> str:
        return f"ghostgpu: {os.path.basename(self._base)} {rank} {number}"

    def count(self) -> int:
        """Count a call to which this rank contributes nothing; returns its number."""
        with self._lock:
            self._calls += 1
            return self._calls - 1

    def fetch(self, rank: int, number: int) -> Pieces:
        """What a rank contributed to a call; empty if it is not available."""
        reader = self._readers.setdefault(rank, _Reader(self._path(rank)))
        found = reader.find(number)
        if found is None:
            self._wait()
            found = reader.find(number)
        ends = time.monotonic() + PATIENCE_SECONDS
        while found is None and time.monotonic() < ends and not self._somebody_left():
            time.sleep(0.01)
            found = reader.find(number)
        return found or []

    def _path(self, rank: int) -> str:
        return f"{self._base}-{rank}"

    def _somebody_left(self) -> bool:
        names = os.listdir(os.path.dirname(self._base))
        return any(name.startswith(RANK_LEFT_PREFIX) for name in names)


class RankValues:
    """All channels of this process, by job: a script's jobs may have groups of the same name."""

    def __init__(
        self,
        run_dir: str,
        wait: Callable[[], object],
        job: Callable[[], str] = lambda: "",
        store: Callable[[], Any] = lambda: None,
    ) -> None:
        self._folder = os.path.join(run_dir, RANKS_FOLDER)
        self._wait = wait
        self._job = job
        self._store = store
        self._channels: dict[tuple[str, int], Channel] = {}

    def channel(self, name: str, rank: int) -> Channel:
        """The channel of this name, in which this process is `rank`."""
        name = f"{self._job()} {name}"
        found = self._channels.get((name, rank))
        if found is None:
            os.makedirs(self._folder, exist_ok=True)
            found = Channel(self._folder, name, rank, self._wait, self._store)
            self._channels[name, rank] = found
        return found
