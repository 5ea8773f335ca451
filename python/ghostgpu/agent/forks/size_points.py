"""Rehearses the script with other sizes than its own, for `ghostgpu max-batch` and `estimate`.

The session names the size point: the training `DataLoader`, an option of the script's command line,
or a call in one of our own scripts. When the script gets there, the size is set, or the script
becomes a server that forks for each size that the command line sends (`fork_server`).
"""

from __future__ import annotations

import json
import os
from typing import Any, Callable

from ..ending import Ending
from ..guard import quietly
from ..report import RECORD, SizePointReport
from ..session import SizePointRequest
from ..stacks import users_line
from ..steps import StepCounter
from . import fork_server
from .argument_size_point import ArgumentSizePoint, batch_options
from .loader_size_point import LoaderSizePoint


class SizeSetter:
    """Sets the sizes of this process, or asks for sizes and forks for each."""

    def __init__(
        self, torch: Any, request: SizePointRequest, ending: Ending, counter: StepCounter
    ) -> None:
        self._torch = torch
        self._request = request
        self._ending = ending
        self._counter = counter
        self._process = os.getpid()
        self.report = RECORD.report.size_point = SizePointReport()
        self._sizes: dict[str, Any] | None = None
        self.in_copies: list[Callable[[int | None], object]] = []
        """Called in each fork, with the number of steps after which it ends, if any."""

    def install(self) -> None:
        """Hook the size point."""
        fork_server.keep_forkable(self._torch)
        if self._request.place in ("training-loader", "first-loader"):
            place = LoaderSizePoint(self._torch, self, self._request.place == "training-loader")
            place.install()
            batch_options(self.report.batch_options)
        elif self._request.option is not None:
            ArgumentSizePoint(self, self._request.option).install()

    @property
    def is_active(self) -> bool:
        """Whether this is the process whose size is set, not a worker that the script forked."""
        return os.getpid() == self._process

    def arrive(self) -> dict[str, Any] | None:
        """Called at the size point; returns the sizes to use, or None for the script's own.

        If sizes are requested from the command line, this returns once in every fork.
        """
        if self._sizes is not None:
            return self._sizes
        self.report.is_found = True
        self.report.place = self.report.place or users_line()
        if self._request.socket is None:
            given = {"batch": self._request.batch, "seq": self._request.seq}
            self._sizes = {name: size for name, size in given.items() if size is not None}
            return self._sizes
        self.report.unforkable = fork_server.why_not_forkable()
        server = fork_server.ForkServer(self._request.socket)
        server.send(json.loads(json.dumps(vars(self.report))))
        sizes = server.serve()
        if sizes is None:
            # All forks have ended: end this process like a script that reached its last step.
            self._sizes = {}
            RECORD.report.stopped_by_step_limit = True
            self._ending.write()
            os._exit(0)
        fork_server.settle_in(self._torch, str(sizes["run_dir"]), has_used_card=True)
        self._process = os.getpid()
        self._sizes = sizes
        self._become_fork(str(sizes["run_dir"]), sizes.get("steps"))
        return sizes

    def refuse(self, problem: str) -> None:
        """The size point was found, but the size cannot be set there."""
        self.report.problem = self.report.problem or problem

    @quietly
    def _become_fork(self, run_dir: str, steps: int | None) -> None:
        self._ending.move_to(run_dir)
        RECORD.report.pid = os.getpid()
        self._counter.ends_hard = True
        if steps is not None:
            self._counter.limit = int(steps)
        for each in self.in_copies:
            each(steps)


_setter: SizeSetter | None = None


def start(
    torch: Any, request: SizePointRequest, ending: Ending, counter: StepCounter
) -> SizeSetter:
    """Set sizes in this process."""
    global _setter
    _setter = SizeSetter(torch, request, ending, counter)
    _setter.install()
    return _setter


def offer_place(
    place: str, batch: int, seq: int | None = None, longest_seq: int | None = None
) -> dict[str, Any]:
    """Called by our own scripts before they use their sizes; returns the sizes to use instead."""
    if _setter is None or not _setter.is_active:
        return {}
    report = _setter.report
    report.place, report.batch, report.seq, report.longest_seq = place, batch, seq, longest_seq
    return _setter.arrive() or {}
