"""This process as one rank of a job: which one, and when all of them are ended.

Ranks decide for themselves that enough of the training has been seen, and not at the same step. One
that ended alone would leave the others waiting for it. So the first rank of the machine names a
step, a little ahead, when all of them have seen enough; whoever is past it by then ends at once. A
rank that was ended says so in the run's folder: nobody waits for it any more.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import time
from typing import Any

from .. import preload
from ..guard import quietly
from ..report import RECORD
from ..shared_numbers import RANK_LEFT_PREFIX, RANKS_FOLDER
from .absent_ranks import ranks_of_this_machine, run_ranks
from .rank_processes import rank_by_variables
from .rank_values import LEFT_KEY
from .rebuilt_buckets import wait_for_watchdogs
from .stuck_ranks import StuckRanks, port_of_store, rank_and_size

STEPS_AHEAD = 2
"""Ranks are hardly ever further apart: their gradients keep them together."""

PATIENCE_SECONDS = 30.0
"""Some ranks never see enough, those without an optimizer, say: nobody waits longer for them."""

FAREWELL_SECONDS = 15.0
"""A rank that has been ended stays for so long after the last one that left: it may keep the store
of all of them."""

WATCHDOG_SECONDS = 5.0
"""The watchdogs of process groups look ten times a second for finished work."""

LOOK_EVERY_SECONDS = 0.5
"""How often a rank looks whether one of the others has ended."""

_ENOUGH_PREFIX = "enough-"
_STOP_FILE = "stop-at"


class Ranks:
    """Knows this process's rank, and ends it together with the others."""

    def __init__(self, torch: Any, run_dir: str) -> None:
        self._torch = torch
        self._folder = os.path.join(run_dir, RANKS_FOLDER)
        self._stuck = StuckRanks(torch, run_dir)
        self._enough_since: float | None = None
        self._looked = 0.0
        self._has_left = False
        self.job = ""
        """A name that this job's ranks have in common, and those of no other job of the run."""

    def install(self) -> None:
        """Learn the rank when a process group is made."""
        distributed = self._torch.distributed
        if not distributed.is_available():
            return
        from torch.distributed import distributed_c10d

        self._stuck.install()
        rank = rank_by_variables(self._folder)
        if rank is not None:
            preload.set_rank(rank)
        original = distributed_c10d.init_process_group
        note, begin = quietly(self._note), quietly(self._begin)

        @functools.wraps(original)
        def init_process_group(*arguments: Any, **options: Any) -> Any:
            begin(arguments, options)
            result = original(*arguments, **options)
            note()
            return result

        patched: Any = distributed_c10d
        patched.init_process_group = init_process_group
        distributed.init_process_group = init_process_group

    def _begin(self, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        """Before the ranks meet: nobody must wait for ever for one that does not come."""
        known = rank_and_size(arguments, options)
        if known is not None:
            RECORD.report.rank, RECORD.report.world_size = known
            preload.set_rank(known[0])
            self._stuck.will_meet(*known, port_of_store(arguments, options))

    def _note(self) -> None:
        report = RECORD.report
        report.rank = int(self._torch.distributed.get_rank())
        report.world_size = int(self._torch.distributed.get_world_size())
        preload.set_rank(report.rank)
        self.job = self._agreed_name()

    @property
    def store(self) -> Any:
        """What all ranks of the job share, on this machine and on others."""
        from torch.distributed import distributed_c10d

        return distributed_c10d._get_default_store()

    def _agreed_name(self) -> str:
        """The name that the first of all ranks to come here has put into their store."""
        proposal = f"{os.getpid()}-{time.time_ns()}"
        return str(self.store.compare_set("ghostgpu: job", "", proposal).decode())

    def note_mistakes(self) -> None:
        """At the end: more ranks than cards, or a rank that never met the others."""
        started, here = _number("WORLD_SIZE", 1), _number("LOCAL_WORLD_SIZE", 1)
        # The processes of the launcher itself are no ranks.
        if started < 2 or "RANK" not in os.environ:
            return
        cuda = self._torch.cuda
        if RECORD.report.rank is None and RECORD.report.exception is not None:
            # It failed before the ranks met.
            RECORD.report.rank, RECORD.report.world_size = _number("RANK", 0), started
        if here > cuda.device_count() > 0:
            cards = f"{cuda.device_count()} card" + "s" * (cuda.device_count() > 1)
            RECORD.assume(f"{here} ranks were started on a machine with {cards} (--count {here})")
        elif RECORD.report.world_size is None and cuda.is_initialized():
            RECORD.assume(
                f"the script was started as {started} ranks and makes no process group: each "
                "process works by itself (torch.distributed.init_process_group)"
            )

    @property
    def are_several(self) -> bool:
        """Whether there are other ranks, or will be."""
        known = RECORD.report.world_size
        return (known if known is not None else _number("WORLD_SIZE", 1)) > 1

    @property
    def _here(self) -> int:
        """How many ranks there are on this machine."""
        run = run_ranks()
        if run is not None:
            return len(run)
        return _number("LOCAL_WORLD_SIZE", RECORD.report.world_size or 1)

    def stop_together(self, is_enough: bool) -> bool:
        """Whether to end this rank after the present step, which it wants if `is_enough`."""
        if not self.are_several:
            return is_enough
        os.makedirs(self._folder, exist_ok=True)
        step = RECORD.report.steps
        if is_enough and self._enough_since is None:
            self._enough_since = time.monotonic()
            self._touch(f"{_ENOUGH_PREFIX}{os.getpid()}")
        stop_at = self._stop_at()
        if stop_at is None and self._is_first and self._have_all_enough():
            stop_at = step + STEPS_AHEAD
            self._touch(_STOP_FILE, str(stop_at))
        if stop_at is not None:
            return step >= stop_at
        waited = 0.0 if self._enough_since is None else time.monotonic() - self._enough_since
        return waited > PATIENCE_SECONDS

    def _have_all_enough(self) -> bool:
        enough = self._count(_ENOUGH_PREFIX)
        if enough == 0 or enough >= self._here:
            return enough > 0
        now = time.monotonic()
        if now - self._looked < LOOK_EVERY_SECONDS:
            return False
        self._looked = now
        return enough + self._stuck.ended_by_themselves() >= self._here

    @property
    def _is_first(self) -> bool:
        run = run_ranks()
        if run is not None:
            return _number("RANK", run[0]) == run[0]
        return _number("LOCAL_RANK", RECORD.report.rank or 0) == 0

    def leave(self) -> None:
        """The rehearsal ends this rank: tell the others, and let them come to their end."""
        if self._has_left or not self.are_several:
            return
        self._has_left = True
        os.makedirs(self._folder, exist_ok=True)
        self._touch(f"{RANK_LEFT_PREFIX}{os.getpid()}")
        if ranks_of_this_machine() is not None:
            quietly(lambda: self.store.set(LEFT_KEY, "yes"))()
        seen, since = 0, time.monotonic()
        while time.monotonic() - since < FAREWELL_SECONDS:
            left = self._count(RANK_LEFT_PREFIX)
            if left + self._stuck.ended_by_themselves() >= self._here:
                return
            if left != seen:
                seen, since = left, time.monotonic()
            time.sleep(0.02)

    def let_work_finish(self) -> None:
        """At the end of a script that keeps its process group: the watchdog must have nothing left.

        On a real card the last collectives finish while Python ends. Here their time passes only
        when somebody waits for them, and a watchdog that still has some when torch is taken apart
        aborts the process.
        """
        cuda, distributed = self._torch.cuda, self._torch.distributed
        if not self.are_several or not cuda.is_initialized() or not distributed.is_initialized():
            return
        with contextlib.suppress(RuntimeError):  # others will not come: the library has said so
            cuda.synchronize()
            # One that failed would keep us here.
            wait = functools.partial(wait_for_watchdogs, self._torch)
            waiting = threading.Thread(target=quietly(wait), daemon=True)
            waiting.start()
            waiting.join(WATCHDOG_SECONDS)

    def _stop_at(self) -> int | None:
        try:
            with open(os.path.join(self._folder, _STOP_FILE), encoding="ascii") as file:
                return int(file.read())
        except (OSError, ValueError):
            return None

    def _touch(self, name: str, text: str = "") -> None:
        path = os.path.join(self._folder, name)
        with open(f"{path}.unfinished", "w", encoding="ascii") as file:
            file.write(text)
        os.replace(f"{path}.unfinished", path)

    def _count(self, prefix: str) -> int:
        names = os.listdir(self._folder)
        return sum(name.startswith(prefix) and "." not in name for name in names)


def _number(variable: str, otherwise: int) -> int:
    try:
        return int(os.environ[variable])
    except (KeyError, ValueError):
        return otherwise
