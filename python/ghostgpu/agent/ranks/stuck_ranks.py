"""Finds ranks that wait for each other, or for one that will never come, before they have met.

Collectives are compared by the stand-in library, which knows who waits for whom. Before that,
ranks meet in PyTorch's store: they wait there, inside C++, for ten minutes or more. So a thread
watches the main thread. If that stands still inside torch, and nobody is left who could let it go
on, the thread says why and ends the process.
"""

from __future__ import annotations

import enum
import functools
import importlib
import json
import os
import select
import signal
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlparse

from ...tricks.user_code import frames_of, is_user_code
from ..guard import quietly
from ..shared_numbers import NOTES_PREFIX, RANKS_FOLDER
from .absent_ranks import ranks_of_this_machine, run_ranks
from .rank_processes import RankProcess, RankProcesses, number_in, rank_by_variables

LOOK_EVERY_SECONDS = 1.0

BUSY_TICKS = 5
"""Waiting in a store uses a little of the processor: so many hundredths of a second, every second,
are no work."""

BLOCKED_SECONDS = 4.0
"""Waiting is told to others when it takes longer than this."""

DEADLOCK_SECONDS = 10.0
"""All ranks must have waited for so long: what they wait for may be on its way."""

PATIENCE_SECONDS = 300.0
"""How long a rank waits for others of which nobody knows whether they were started."""

STILL_SECONDS, STILL_TICKS = 50.0, 50
"""A rank that waits for nobody, and in so long uses so few hundredths of a second of the processor,
does nothing. The library, which knows more about collectives, says so a little sooner."""

_WAITING_PARTS = tuple(
    os.path.join("torch", part) + os.sep for part in ("distributed", "autograd", "nn/parallel")
)
"""Where torch waits for other ranks. Elsewhere it waits for files, compilers, workers."""

_WRAPPERS = frozenset({"wrapper", "inner", "_wrapped", "_fn", "__call__", "_call_impl"})


class _Stands(enum.Enum):
    """Where a main thread does nothing."""

    WAITING = enum.auto()
    """Inside torch, for other ranks."""
    ELSEWHERE = enum.auto()


@dataclass(frozen=True)
class Trouble:
    """Why ranks cannot go on, in a sentence."""

    sentence: str
    is_consequence: bool
    """Another rank has ended, and may have told why."""


def find_trouble(
    own: RankProcess,
    peers: list[RankProcess],
    expected: int | None,
    waited_seconds: float,
    elsewhere: frozenset[int],
) -> Trouble | None:
    """Why a rank that waits will wait for ever; None if somebody may still let it go on.

    `expected` is how many processes were to be started here, None if nobody knows. Ranks that are
    `elsewhere` are run by other machines, or not at all.
    """
    if own.blocked_in is None or own.world_size is None:
        return None
    waits = f"rank {own.rank} waits in {own.blocked_in}"
    arrived = [peer for peer in peers if peer.world_size is not None]
    never = set(range(own.world_size)) - {peer.rank for peer in arrived} - elsewhere
    gone = [peer for peer in peers if not peer.is_alive and not peer.was_ended]
    gone_early = [peer for peer in gone if peer.world_size is None]
    if gone_early:
        ranks = _ranks_of(gone_early, never)
        return Trouble(_waits_in_vain(waits, ranks, "ended before it joined the job"), True)
    alive = [peer for peer in peers if peer.is_alive and not peer.was_ended]
    are_all_known = expected is not None and len(peers) >= expected
    busy = [peer for peer in alive if peer.blocked_in is None]
    still = [peer for peer in busy if peer.still_seconds > STILL_SECONDS]
    if still and len(still) == len(busy):
        return Trouble(f"{waits} for {_standing(still, never)}", False)
    if busy:
        return None
    by_rank = sorted(alive, key=lambda peer: (peer.rank or 0, peer.pid))
    sentence = _difference(by_rank)
    if sentence is not None:
        return Trouble(sentence, False)
    if never and are_all_known:
        started = f"of the {own.world_size} ranks that the script expects, {len(peers)} "
        started += "was started" if len(peers) == 1 else "were started"
        return Trouble(f"{waits} for {_listed(sorted(never))}: {started}", False)
    if waited_seconds < (DEADLOCK_SECONDS if are_all_known else PATIENCE_SECONDS):
        return None
    if never:
        seconds = f"within {waited_seconds:.0f} s"
        return Trouble(f"{waits} for {_listed(sorted(never))}, which did not come {seconds}", False)
    ended = sorted(peer.rank for peer in gone if peer.rank is not None)
    if ended:
        return Trouble(_waits_in_vain(waits, ended, "ended"), True)
    if elsewhere and run_ranks() is None:
        return None  # a rank of another machine may let them go on
    waiting = (f"rank {peer.rank} waits in {peer.blocked_in}" for peer in by_rank)
    return Trouble(", ".join(waiting) + ": a real job would hang there", False)


def _difference(waiting: list[RankProcess]) -> str | None:
    """Why ranks that all wait can never meet, in a sentence: they were told different things."""
    for one, other in zip(waiting, waiting[1:]):
        if one.rank == other.rank:
            return f"two processes take part as rank {one.rank}"
        at = f" ({other.blocked_in})" if other.blocked_in is not None else ""
        if one.world_size != other.world_size:
            expects = f"rank {one.rank} expects {one.world_size} ranks, and rank {other.rank}"
            return f"{expects} expects {other.world_size}{at}"
        if None not in (one.port, other.port) and one.port != other.port:
            looks = f"rank {one.rank} looks for the others at port {one.port}, and rank"
            return f"{looks} {other.rank} at port {other.port}{at}: a real job would hang there"
    return None


def _ranks_of(processes: list[RankProcess], missing: set[int]) -> list[int]:
    """Which ranks some processes would have been: their variables say so, or those who came do."""
    known = [process.rank for process in processes if process.rank is not None]
    return sorted(known) if len(known) == len(processes) else sorted(missing)[: len(processes)]


def _standing(still: list[RankProcess], missing: set[int]) -> str:
    has = "has" if len(still) == 1 else "have"
    places = sorted({peer.stands_at for peer in still if peer.stands_at is not None})
    at = f" at {places[0]}" if len(places) == 1 else ""
    ranks = _listed(_ranks_of(still, missing))
    return f"{ranks}, which {has} done nothing for {STILL_SECONDS:.0f} s{at}"


def _waits_in_vain(waits: str, ranks: list[int], what: str) -> str:
    has = "has" if len(ranks) == 1 else "have"
    if len(ranks) > 1:
        what = what.replace("it joined", "they joined")
    return f"{waits} for {_listed(ranks)}, which {has} {what}: a real job would hang there"


def _listed(ranks: list[int]) -> str:
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    shown = [str(rank) for rank in ranks[:8]]
    last = f"{len(ranks) - 8} more" if len(ranks) > 8 else shown.pop()
    return f"ranks {', '.join(shown)} and {last}"


class StuckRanks:
    """Watches the main thread of a process: from the start of one that was started as a rank, else
    from `init_process_group` on."""

    def __init__(self, torch: Any, run_dir: str) -> None:
        self._torch = torch
        self._run_dir = run_dir
        self._processes = RankProcesses(run_dir)
        self._watched_by: int | None = None
        self._hears: int | None = None
        self._stands: _Stands | None = None
        self._since = 0.0
        self._place: tuple[Any, ...] = ()
        self._is_told = False
        self._is_to_end = False
        self._still: dict[int, tuple[int, float]] = {}

    def install(self) -> None:
        """Hear of processes that are spawned, and begin the watch of one that is a rank by now."""
        if not self._torch.distributed.is_available():
            return
        # A function of this name stands in front of the module.
        context: Any = importlib.import_module("torch.multiprocessing.spawn").ProcessContext
        original = context.__init__
        note = quietly(self._processes.note_spawned)

        @functools.wraps(original)
        def made(this: Any, processes: Any, *others: Any, **named: Any) -> None:
            original(this, processes, *others, **named)
            note(process.pid for process in processes)

        context.__init__ = made
        if rank_by_variables(os.path.join(self._run_dir, RANKS_FOLDER)) is not None:
            self._begin()

    def will_meet(self, rank: int, world_size: int, port: int | None) -> None:
        """This process is about to make a process group as this rank."""
        if world_size < 2:
            return
        self._processes.note_arrived(rank, world_size, port)
        if self._hears is None or self._watched_by != os.getpid():
            self._hears = self._hear_signals()
        self._begin()

    def ended_by_themselves(self) -> int:
        """How many ranks of this machine have ended, and not because the rehearsal ended them."""
        peers, _ = self._processes.peers()
        return sum(not peer.is_alive and not peer.was_ended for peer in peers)

    def _begin(self) -> None:
        if self._watched_by == os.getpid():
            return
        self._watched_by = os.getpid()
        watch = quietly(self._watch)
        threading.Thread(target=watch, name="ghostgpu: stuck ranks", daemon=True).start()

    def _hear_signals(self) -> int | None:
        """A pipe in which the numbers of signals arrive; None if somebody else has one."""
        if threading.current_thread() is not threading.main_thread():
            return None
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        if before == -1:
            return reading
        signal.set_wakeup_fd(before)
        os.close(reading)
        os.close(writing)
        return None

    def _watch(self) -> None:
        ticks = _main_threads_ticks()
        while True:
            self._pause()
            before, ticks = ticks, _main_threads_ticks()
            stands_still = ticks is not None and before is not None and ticks - before <= BUSY_TICKS
            if stands_still and self._is_to_end:
                os._exit(128 + signal.SIGTERM)
            self._note(self._where_it_stands() if stands_still else None)
            if self._is_told and self._stands is _Stands.WAITING:
                trouble = self._trouble()
                if trouble is not None:
                    self._end(trouble)

    def _pause(self) -> None:
        hears = self._hears
        if hears is None:
            time.sleep(LOOK_EVERY_SECONDS)
            return
        heard, _, _ = select.select([hears], [], [], LOOK_EVERY_SECONDS)
        if heard and signal.SIGTERM in os.read(hears, 64):
            # A launcher ends the ranks that are left so, and waits for them. The main thread hears
            # of it only when it comes back from C++.
            self._is_to_end = True
            time.sleep(LOOK_EVERY_SECONDS)

    def _where_it_stands(self) -> _Stands | None:
        """Where the main thread is, if it was there before.

        Looked at only where it has done nothing for a while: a frame that is looked at keeps the
        tensors of its function for that long.
        """
        frame = sys._current_frames().get(threading.main_thread().ident or 0)
        frames = frames_of(frame)[-3:]
        place = tuple((id(each.f_code), each.f_lasti) for each in frames)
        is_same, self._place = place == self._place, place
        if not is_same or not frames:
            return None
        is_waiting = _is_in_waiting_part(frames[-1].f_code.co_filename)
        return _Stands.WAITING if is_waiting else _Stands.ELSEWHERE

    def _note(self, stands: _Stands | None) -> None:
        now = time.monotonic()
        if stands is not self._stands:
            self._stands, self._since = stands, now
            if self._is_told:
                self._processes.note_going_on()
                self._is_told = False
        elif stands is not None and not self._is_told and now - self._since > BLOCKED_SECONDS:
            where = _where(frames_of(sys._current_frames().get(threading.main_thread().ident or 0)))
            if stands is _Stands.WAITING:
                self._processes.note_blocked(where)
            else:
                self._processes.note_standing(where)
            self._is_told = True

    def _trouble(self) -> Trouble | None:
        peers, expected = self._processes.peers()
        own = next((peer for peer in peers if peer.pid == os.getpid()), None)
        if own is None or own.world_size is None:
            return None
        for peer in peers:
            peer.still_seconds = self._still_seconds(peer)
        run = run_ranks()
        expected = len(run) if run is not None else expected
        here = run or ranks_of_this_machine()
        everywhere = frozenset(range(own.world_size))
        elsewhere = everywhere.difference(here) if here is not None else frozenset()
        waited = time.monotonic() - self._since
        return find_trouble(own, peers, expected, waited, elsewhere)

    def _still_seconds(self, peer: RankProcess) -> float:
        ticks, now = peer.ticks, time.monotonic()
        before, since = self._still.setdefault(peer.pid, (ticks, now))
        if peer.blocked_in is not None or ticks > before + STILL_TICKS:
            self._still[peer.pid] = (ticks, now)
            return 0.0
        return now - since

    def _end(self, trouble: Trouble) -> None:
        note = {
            "kind": "ranks",
            "text": trouble.sentence,
            "is_consequence": trouble.is_consequence,
        }
        path = os.path.join(self._run_dir, f"{NOTES_PREFIX}{os.getpid()}.jsonl")
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(note) + "\n")
        os._exit(1)


def _main_threads_ticks() -> int | None:
    """The processor time of the main thread, in hundredths of a second; None while it works."""
    with open(f"/proc/self/task/{os.getpid()}/stat", encoding="utf-8", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12]) if fields[0] == "S" else None


def _is_in_waiting_part(file: str) -> bool:
    return any(part in file for part in _WAITING_PARTS)


def _where(frames: list[Any]) -> str:
    """What the user's innermost line has called, and that line."""
    for place in range(len(frames) - 1, -1, -1):
        frame = frames[place]
        if is_user_code(frame.f_code.co_filename):
            line = f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
            called = (_name(each) for each in frames[place + 1 :])
            name = next((each for each in called if each not in _WRAPPERS), None)
            return f"{name} at {line}" if name else line
    return _name(frames[-1]) if frames else "torch.distributed"


def _name(frame: Any) -> str:
    name: str = getattr(frame.f_code, "co_qualname", frame.f_code.co_name)
    name = name.rpartition("<locals>.")[2]
    return name.removesuffix(".__init__")


_ARGUMENTS = ("backend", "init_method", "timeout", "world_size", "rank", "store")
"""Of `init_process_group`, by position."""


def port_of_store(arguments: tuple[Any, ...], options: dict[str, Any]) -> int | None:
    """The port at which a call of `init_process_group` looks for the other ranks; None if they meet
    elsewhere, in a file, say."""
    given = {**dict(zip(_ARGUMENTS, arguments)), **options}
    if given.get("store") is not None:
        return None
    method = str(given.get("init_method") or "env://")
    return number_in("MASTER_PORT") if method.startswith("env://") else urlparse(method).port


def rank_and_size(arguments: tuple[Any, ...], options: dict[str, Any]) -> tuple[int, int] | None:
    """Which rank of how many a call of `init_process_group` makes; None if that is not said."""
    given = {**dict(zip(_ARGUMENTS, arguments)), **options}
    query = parse_qs(urlparse(str(given.get("init_method") or "")).query)

    def found(name: str, variable: str) -> int | None:
        value = given.get(name)
        if isinstance(value, int) and value >= 0:
            return value
        values = query.get(name)
        return int(values[0]) if values else number_in(variable)

    rank, size = found("rank", "RANK"), found("world_size", "WORLD_SIZE")
    return (rank, size) if rank is not None and size is not None else None
