"""Seconds by the clock, without those in which a busy machine had no core for this process.

What is rehearsed, and with it the verdict, should not depend on what else the machine does. CPU
time would not do: a script that waits for its data takes none. Independent of torch.
"""

from __future__ import annotations

import os
import time
from typing import Callable

_LOOK_EVERY_SECONDS = 0.25
_NANOSECONDS = 1e-9

Delays = dict[int, float]
"""For each thread, how many seconds it has waited for a core."""


class UndisturbedClock:
    """A clock that stands while this process is ready to run and others are running.

    The kernel counts for how long each thread waits for a core. The main thread and the one that
    computes gradients take turns, so their waits add up; threads that work at the same time
    wait at the same time. Where the kernel does not count, this is an ordinary clock.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        delays: Callable[[], Delays] | None = None,
    ) -> None:
        self._clock = clock
        self._read_delays = delays or delays_of_threads
        self._delays = self._read_delays()
        self._looked_at = clock()
        self._waited = 0.0
        self._latest = 0.0

    def __call__(self) -> float:
        """The time; only differences of it mean something."""
        now = self._clock()
        if now - self._looked_at >= _LOOK_EVERY_SECONDS:
            self._look(now)
        # Between two looks, the clock runs ahead of itself.
        self._latest = max(self._latest, now - self._waited)
        return self._latest

    def _look(self, now: float) -> None:
        delays = self._read_delays()
        longer = {
            thread: max(0.0, delay - self._delays.get(thread, 0.0))
            for thread, delay in delays.items()
        }
        main = longer.pop(os.getpid(), 0.0)
        waited = main + max(longer.values(), default=0.0)
        self._waited += min(waited, now - self._looked_at)
        self._delays = delays
        self._looked_at = now


def delays_of_threads() -> Delays:
    """The delays of all threads of this process; empty where the kernel does not count them."""
    delays: Delays = {}
    try:
        threads = os.listdir("/proc/self/task")
    except OSError:
        return delays
    for thread in threads:
        try:
            with open(f"/proc/self/task/{thread}/schedstat", "rb") as file:
                delays[int(thread)] = int(file.read().split()[1]) * _NANOSECONDS
        except (OSError, IndexError, ValueError):
            # The thread has ended, or there are no such figures.
            continue
    return delays
