"""Goes on in a forked copy of the script for each rehearsal that the command line wants.

A copy has everything the script had built: imported modules, the model, the optimizer, what lies on
the virtual card, PyTorch's allocator in its present state. PyTorch forbids CUDA in such a copy,
because a real driver does not survive a fork. The stand-in library does: it holds no threads and no
files, and counts the copy's memory in the copy's own run (`ghostgpu_continue_in`).
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

from . import preload
from .shared_numbers import SESSION_FILE, SESSION_VARIABLE

_HARMLESS_THREADS = frozenset({"TMonitor"})
"""Threads that nobody waits for: tqdm's, which redraws stuck progress bars."""

_PAUSE_S = 0.01
"""How long it may go unnoticed that a copy has ended."""

_forking = False


def is_forking() -> bool:
    """Whether a fork under way makes a copy that goes on as the script itself."""
    return _forking


def why_not_forkable() -> str | None:
    """Why a forked copy of this process could not go on as the script, or None if it can."""
    if threading.current_thread() is not threading.main_thread():
        return "the place is reached in a thread of its own"
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and type(thread).__name__ not in _HARMLESS_THREADS:
            return f"the script runs threads ({thread.name})"
    if int(os.environ.get("WORLD_SIZE") or 1) > 1:
        return "the script runs in several processes"
    return None


def keep_forkable(torch: Any) -> None:
    """Have questions about the card not mark this process as one whose copies may not use CUDA.

    `torch.cuda.is_available()` does that, and nearly every script asks it early.
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
    """The script's side of the line to the command line: one JSON object per line."""

    def __init__(self, path: str) -> None:
        self._line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._line.connect(path)
        self._received = b""

    def send(self, message: dict[str, Any]) -> None:
        self._line.sendall(json.dumps(message).encode() + b"\n")

    def close(self) -> None:
        """Leave the line to a copy."""
        self._line.close()

    def serve(self, before_first: Callable[[], object] | None = None) -> dict[str, Any] | None:
        """Fork for each request, also while copies run. Returns a request in each copy, and None
        here, at the end: when the command line hangs up, copies that still run are killed.

        `before_first` is called when there is a first request: what it does is done for all copies.
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
        """Say how children have ended that have; how long the others may be left alone."""
        for child, (run_dir, started) in list(children.items()):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                del children[child]
                code = os.waitstatus_to_exitcode(status)
                seconds = time.monotonic() - started
                self.send({"run_dir": run_dir, "status": code, "seconds": seconds})
        return _PAUSE_S if children else 0.0

    def _has_word_within(self, seconds: float) -> bool:
        """Whether there is a request, or the command line hung up."""
        if b"\n" in self._received or seconds == 0.0:
            return True
        return bool(select.select([self._line], [], [], seconds)[0])


def fork() -> int:
    """Make a copy that goes on as the script itself."""
    global _forking
    # What is still in buffers would be written by every copy.
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    _forking = True
    try:
        return os.fork()
    finally:
        _forking = False


def settle_in(torch: Any, run_dir: str, *, has_used_card: bool) -> None:
    """Make this copy a process of its own run, which may use CUDA."""
    os.environ[SESSION_VARIABLE] = os.path.join(run_dir, SESSION_FILE)
    if not (preload.continue_in(run_dir) if has_used_card else preload.reopen_session()):
        sys.stderr.write("ghostgpu: the copy cannot use the cards of its own run\n")
        os._exit(preload.EXIT_OWN_FAILURE)
    anything: Any = torch
    anything._C._cuda_isInBadFork = anything.cuda._is_in_bad_fork = lambda: False
    # The threads of the pool did not come along, and OpenMP would wait for them.
    torch.set_num_threads(1)
    anything.set_num_threads = lambda number: None
