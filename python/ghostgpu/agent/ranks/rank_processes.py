"""Which processes of this machine are ranks of a job, and how far each of them has come.

Before ranks have met, nobody knows of the others. What the processes write into the run's folder
says who was started, who has come to `init_process_group`, and who waits. Processes that have not
imported torch yet write there too, so this file imports next to nothing.

* `started-<pid>`: a process whose variables say which rank it is, written when Python starts.
* `spawned-<pid>-<number>`: the processes that `torch.multiprocessing` has started at once.
* `arrived-<pid>`: a process calls `init_process_group`.
* `blocked-<pid>`: a process has been waiting inside torch for some seconds.
* `waiting-<pid>`: a process waits for a collective of others; from the library.
* `standing-<pid>`: a process has done nothing for some seconds, somewhere else.
* `fault-<pid>`: what Python wrote when a rank died of a fatal signal; empty while it lives.
"""

from __future__ import annotations

import json
import os

from ..shared_numbers import (
    RANK_BLOCKED_PREFIX,
    RANK_LEFT_PREFIX,
    RANK_SPAWNED_PREFIX,
    RANK_STANDING_PREFIX,
    RANK_STARTED_PREFIX,
    RANK_WAITING_PREFIX,
    RANKS_FOLDER,
    SESSION_VARIABLE,
)
from .fatal_signals import note_fatal_signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

ARRIVED_PREFIX = "arrived-"


def note_started() -> None:
    """Say that this process was started as a rank, if its variables say so."""
    rank, size = number_in("RANK"), number_in("WORLD_SIZE")
    if rank is None or size is None or size < 2:
        return
    fields = {"rank": rank, "parent": os.getppid(), "here": _started_here(size)}
    folder = _folder_of_session()
    _write(folder, RANK_STARTED_PREFIX + str(os.getpid()), _identified(fields))
    note_fatal_signals(folder)


def _started_here(world_size: int) -> int | None:
    """How many ranks were started on this machine; None where the variables do not say."""
    told = number_in("LOCAL_WORLD_SIZE")
    if told is None and os.environ.get("MASTER_ADDR") in ("127.0.0.1", "localhost"):
        return world_size
    return told


def rank_by_variables(folder: str) -> int | None:
    """The rank as which this process was started; None of one that a rank has started itself."""

    def was_started(pid: int) -> bool:
        return os.path.exists(os.path.join(folder, RANK_STARTED_PREFIX + str(pid)))

    is_rank = was_started(os.getpid()) and not was_started(os.getppid())
    return number_in("RANK") if is_rank else None


def number_in(variable: str) -> int | None:
    """The number that a variable has; None if it has none."""
    try:
        return int(os.environ[variable])
    except (KeyError, ValueError):
        return None


def _folder_of_session() -> str:
    return os.path.join(os.path.dirname(os.environ[SESSION_VARIABLE]), RANKS_FOLDER)


def _identified(fields: dict[str, Any]) -> dict[str, Any]:
    return {"pid": os.getpid(), "began": began(os.getpid()), **fields}


def _write(folder: str, name: str, fields: Any) -> None:
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, name)
    # The ending keeps others from reading half of it.
    unfinished = f"{path}.unfinished"
    with open(unfinished, "w", encoding="utf-8") as file:
        json.dump(fields, file)
    os.replace(unfinished, path)


def _stat(pid: int) -> list[str]:
    """The fields of a process behind its name, which may contain anything; none if it has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


def began(pid: int) -> int:
    """When a process began, since numbers of processes are used again; 0 if it has ended."""
    fields = _stat(pid)
    return int(fields[19]) if fields else 0


class RankProcess:
    """One process that is a rank, or may become one."""

    def __init__(self, pid: int, began: int, rank: int | None = None) -> None:
        self.pid = pid
        self._began = began
        self.rank = rank
        """Its rank, once that is known."""
        self.world_size: int | None = None
        """What it has told `init_process_group`; None before."""
        self.port: int | None = None
        """At which it looks for the others, if it does so by a port."""
        self.blocked_in: str | None = None
        """Where it waits, if it does."""
        self.stands_at: str | None = None
        """The line at which it does nothing, if it waits for nobody and says so."""
        self.still_seconds = 0.0
        """For how long it was seen to do nothing."""
        self.was_ended = False
        """By the rehearsal, which tells the others itself."""

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        fields = _stat(self.pid)
        return bool(fields) and int(fields[19]) == self._began and fields[0] not in "ZX"

    @property
    def ticks(self) -> int:
        """Processor time of it and of what it has started, in hundredths of a second."""
        return _ticks(self.pid)


def _ticks(pid: int) -> int:
    fields = _stat(pid)
    if not fields:
        return 0
    children: list[str] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
                children += file.read().split()
    except OSError:
        pass  # it has ended, or a thread has
    return sum(map(int, fields[11:15])) + sum(_ticks(int(child)) for child in children)


class RankProcesses:
    """The files of one run, as one of its processes writes and reads them."""

    def __init__(self, run_dir: str) -> None:
        self._folder = os.path.join(run_dir, RANKS_FOLDER)
        self._spawned = 0

    def note_spawned(self, pids: Iterable[int]) -> None:
        """This process has started these, in the order of their indices."""
        self._spawned += 1
        name = f"{RANK_SPAWNED_PREFIX}{os.getpid()}-{self._spawned}"
        _write(self._folder, name, [{"pid": pid, "began": began(pid)} for pid in pids])

    def note_arrived(self, rank: int, world_size: int, port: int | None = None) -> None:
        """This process calls `init_process_group`."""
        note_fatal_signals(self._folder)
        fields = {"rank": rank, "world_size": world_size, "port": port}
        _write(self._folder, ARRIVED_PREFIX + str(os.getpid()), _identified(fields))

    def note_blocked(self, waits_in: str) -> None:
        """This process has been waiting for some seconds."""
        _write(self._folder, RANK_BLOCKED_PREFIX + str(os.getpid()), {"waits_in": waits_in})

    def note_standing(self, stands_at: str) -> None:
        """This process has done nothing for some seconds, and waits for nobody."""
        _write(self._folder, RANK_STANDING_PREFIX + str(os.getpid()), {"stands_at": stands_at})

    def note_going_on(self) -> None:
        """This process waits or stands no longer."""
        for prefix in (RANK_BLOCKED_PREFIX, RANK_STANDING_PREFIX):
            path = os.path.join(self._folder, prefix + str(os.getpid()))
            if os.path.exists(path):
                os.remove(path)

    def peers(self) -> tuple[list[RankProcess], int | None]:
        """The processes that were started together with this one, and how many were to be.

        The number is None where nobody has said.
        """
        files = self._files()
        together, expected = self._started_together(files)
        known = {process.pid: process for process in together}
        for name, fields in files.items():
            if name.startswith(ARRIVED_PREFIX):
                process = known.get(fields["pid"])
                if process is None:
                    if expected is not None:
                        continue  # of another job of this run
                    process = RankProcess(fields["pid"], fields["began"])
                    known[process.pid] = process
                process.rank, process.world_size = fields["rank"], fields["world_size"]
                process.port = fields["port"]
        for process in known.values():
            # What the agent knows has a line.
            for prefix in (RANK_WAITING_PREFIX, RANK_BLOCKED_PREFIX):
                fields = files.get(f"{prefix}{process.pid}")
                if fields is not None:
                    process.blocked_in = fields["waits_in"]
            standing = files.get(f"{RANK_STANDING_PREFIX}{process.pid}")
            process.stands_at = standing["stands_at"] if standing is not None else None
            process.was_ended = f"{RANK_LEFT_PREFIX}{process.pid}" in files
        return list(known.values()), expected

    def _started_together(self, files: dict[str, Any]) -> tuple[list[RankProcess], int | None]:
        for name, fields in files.items():
            if name.startswith(RANK_SPAWNED_PREFIX) and any(
                (each["pid"], each["began"]) == (os.getpid(), began(os.getpid())) for each in fields
            ):
                return [RankProcess(each["pid"], each["began"]) for each in fields], len(fields)
        started = {
            fields["pid"]: fields
            for name, fields in files.items()
            if name.startswith(RANK_STARTED_PREFIX)
        }
        if os.getpid() not in started:
            return [], None
        newest: dict[int, dict[str, Any]] = {}
        for fields in sorted(started.values(), key=lambda each: int(each["began"])):
            parent = started.get(fields["parent"])
            # What a rank starts itself has its variables too.
            if parent is None or parent["rank"] != fields["rank"]:
                newest[fields["rank"]] = fields
        processes = [RankProcess(it["pid"], it["began"], it["rank"]) for it in newest.values()]
        return processes, started[os.getpid()]["here"]

    def _files(self) -> dict[str, Any]:
        """What all files have; an empty one says something by its name alone."""
        found: dict[str, Any] = {}
        prefixes = (
            *(RANK_STARTED_PREFIX, RANK_SPAWNED_PREFIX, ARRIVED_PREFIX, RANK_WAITING_PREFIX),
            *(RANK_BLOCKED_PREFIX, RANK_STANDING_PREFIX),
        )
        for name in os.listdir(self._folder):
            if "." in name:
                continue  # it is being written
            if name.startswith(RANK_LEFT_PREFIX):
                found[name] = None
            elif name.startswith(prefixes):
                try:
                    with open(os.path.join(self._folder, name), encoding="utf-8") as file:
                        found[name] = json.load(file)
                except FileNotFoundError:
                    pass  # whoever waited goes on
        return found
