"""Forks the script for each rehearsal that the command line requests.

The fork has everything the script had built: imported modules, the model, the optimizer, memory on
the virtual card, the state of PyTorch's allocator. PyTorch forbids CUDA in a forked process because
a real driver does not survive a fork. The stand-in library does: it has no threads and no open
files, and counts the fork's memory in the fork's own run (`ghostgpu_continue_in`).
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import socket
import sys
import threading
import time
from typing import Any, Callable

from .. import preload
from ..shared_numbers import SESSION_FILE, SESSION_VARIABLE

_HARMLESS_THREADS = frozenset({"TMonitor"})
"""Threads that a fork can do without: tqdm's, which redraws stuck progress bars."""

_PAUSE_S = 0.01
"""How often to check whether a fork has ended."""

_forking = False


def is_forking() -> bool:
    """Whether the fork in progress continues as the script itself."""
    return _forking


def why_not_forkable() -> str | None:
    """Why a fork of this process could not continue as the script; None if it can."""
    if threading.current_thread() is not threading.main_thread():
        return "the place is reached in a thread of its own"
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and type(thread).__name__ not in _HARMLESS_THREADS:
            return f"the script runs threads ({thread.name})"
    if int(os.environ.get("WORLD_SIZE") or 1) > 1:
        return "the script runs in several processes"
    return None


def keep_forkable(torch: Any) -> None:
    """Keep queries about the card from making PyTorch forbid CUDA in forks of this process.

    `torch.cuda.is_available()` does that, and nearly every script calls it early.
    """
    try:
        count = ctypes.CDLL(None).cudaGetDeviceCount
    except (OSError, AttributeError):
        return

    def device_count() -> int:
        number = ctypes.c_int(0)
        return number.value if count(ctypes.byref(number)) == 0 else 0

    if hasattr(torch._C, "_cuda_getDeviceCount"):
        torch._C._cuda_getDeviceCount = device_count


class ForkServer:
    """The script's end of the socket to the command line: one JSON object per line."""

    def __init__(self, path: str) -> None:
        self._line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._line.connect(path)
        self._received = b""

    def send(self, message: dict[str, Any]) -> None:
        self._line.sendall(json.dumps(message).encode() + b"\n")

    def close(self) -> None:
        """Close this process's end; a fork keeps the connection."""
        self._line.close()

    def serve(self, before_first: Callable[[], object] | None = None) -> dict[str, Any] | None:
        """Fork for each request, also while other forks run.

        Returns the request in each fork. Here it returns None when the command line has hung up;
        forks that still run are then killed. `before_first` is called at the first request, before
        forking, so that all forks have what it prepares.
        """
        children: dict[int, tuple[str, float]] = {}
        while True:
            if children and not self._has_word_within(self._report_ended(children)):
                continue
            request = self._receive()
            if request is None or "run_dir" not in request:
                for child in children:
                    os.kill(child, signal.SIGKILL)
                    os.waitpid(child, 0)
                return None
            if before_first is not None:
                before_first()
                before_first = None
            started = time.monotonic()
            child = fork()
            if child == 0:
                self._line.close()
                return request
            children[child] = (str(request["run_dir"]), started)

    def _receive(self) -> dict[str, Any] | None:
        while b"\n" not in self._received:
            part = self._line.recv(4096)
            if not part:
                return None
            self._received += part
        line, _, self._received = self._received.partition(b"\n")
        message = json.loads(line)
        return message if isinstance(message, dict) else None

    def _report_ended(self, children: dict[int, tuple[str, float]]) -> float:
        """Report children that have ended; returns how long to wait before the next check."""
        for child, (run_dir, started) in list(children.items()):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                del children[child]
                code = os.waitstatus_to_exitcode(status)
                seconds = time.monotonic() - started
                self.send({"run_dir": run_dir, "status": code, "seconds": seconds})
        return _PAUSE_S if children else 0.0

    def _has_word_within(self, seconds: float) -> bool:
        """Whether a request arrives or the command line hangs up within this time."""
        if b"\n" in self._received or seconds == 0.0:
            return True
        return bool(select.select([self._line], [], [], seconds)[0])


def fork() -> int:
    """Fork a process that continues as the script itself."""
    global _forking
    random: Any = sys.modules.get("random")
    drawn = random.getstate() if random is not None else None
    # Otherwise every fork would write what is still in the buffers.
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    _forking = True
    try:
        pid = os.fork()
    finally:
        _forking = False
    if pid == 0 and random is not None:
        # Python seeds `random` anew in every fork; the script may have seeded it itself.
        random.setstate(drawn)
    return pid


def settle_in(torch: Any, run_dir: str, *, has_used_card: bool) -> None:
    """Move this fork into its own run, and let it use CUDA."""
    os.environ[SESSION_VARIABLE] = os.path.join(run_dir, SESSION_FILE)
    if not (preload.continue_in(run_dir) if has_used_card else preload.reopen_session()):
        sys.stderr.write("ghostgpu: the copy cannot use the cards of its own run\n")
        os._exit(preload.EXIT_OWN_FAILURE)
    anything: Any = torch
    anything._C._cuda_isInBadFork = anything.cuda._is_in_bad_fork = lambda: False
    # The threads of OpenMP's pool do not survive the fork, and OpenMP would wait for them.
    torch.set_num_threads(1)
    anything.set_num_threads = lambda number: None
