"""Makes a copy of the script just before it first uses the card.

Everything up to that point is the same in every rehearsal of a job, however much memory the card
has. The script itself continues normally. The copy connects to the command line and waits; for
each further rehearsal it forks once more, and that fork continues from here as the script, with its
own session (`crates/rehearse/src/copies.rs`). No copy is made where it could behave differently
from the script: if threads, child processes or files being written would be shared with it, or if
the script is only one part of a job, such as one of the runs of a shell script.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import stat
import sys
from typing import Any, Callable

from ..guard import note_fault
from . import fork_server

_FIRST_OF_SCRIPT = 3
"""Lower file descriptors are the standard streams."""


class CardPoint:
    """Detects the first use of the card: `torch.cuda` is initialised, or a model is moved there."""

    def __init__(self, torch: Any, socket_path: str, in_copy: Callable[[str], object]) -> None:
        self._torch = torch
        self._socket_path = socket_path
        self._in_copy = in_copy
        self._process = os.getpid()
        self._has_arrived = False
        self._restore: list[Callable[[], None]] = []

    def install(self) -> None:
        """Wrap everything that initialises CUDA."""
        torch = self._torch
        fork_server.keep_forkable(torch)
        start = torch.cuda._lazy_init
        # Several modules have imported the function by name.
        for name, module in list(sys.modules.items()):
            is_own = name == "torch.cuda" or name.startswith("torch.cuda.")
            if is_own and getattr(module, "_lazy_init", None) is start:
                self._replace(module, "_lazy_init", lambda *arguments, **options: True)
        for name in ("cuda", "to"):
            self._replace(torch.nn.Module, name, _leads_to_card(torch, name))

    def _replace(self, owner: Any, name: str, is_point: Callable[..., bool]) -> None:
        original = getattr(owner, name)

        @functools.wraps(original)
        def wrapper(*arguments: Any, **options: Any) -> Any:
            if self._has_arrived or not is_point(*arguments, **options):
                return original(*arguments, **options)
            before = getattr(owner, name)
            self._arrive()
            now = getattr(owner, name)
            # In a copy, tricks may have wrapped the function in the meantime.
            is_new = now is not before and now is not original
            return (now if is_new else original)(*arguments, **options)

        setattr(owner, name, wrapper)

        def restore() -> None:
            if getattr(owner, name) is wrapper:
                setattr(owner, name, original)

        self._restore.append(restore)

    def _arrive(self) -> None:
        self._has_arrived = True
        for restore in self._restore:
            restore()
        self._restore.clear()
        if os.getpid() != self._process or self._torch.cuda.is_initialized():
            return
        if _why_not_copied() is not None:
            return
        try:
            server = fork_server.ForkServer(self._socket_path)
        except OSError:
            return  # the command line no longer waits for a copy
        positions = _positions()
        if fork_server.fork() != 0:
            server.close()
            return
        # From here on this is the copy: a failure in it must not look like the script's own end.
        try:
            _be_silent()
            server.send({"pid": os.getpid()})
            request = server.serve(_import_for_optimizers)
        except BaseException:
            os._exit(0)
        if request is None:
            os._exit(0)
        try:
            _write_output_to(str(request["output"]))
            _read_files_alone(positions)
            run_dir = str(request["run_dir"])
            fork_server.settle_in(self._torch, run_dir, has_used_card=False)
            self._in_copy(run_dir)
        except Exception as error:
            note_fault("continuing in a copy", error)


def _import_for_optimizers() -> None:
    """Import what every optimizer's constructor imports: it would take a second in each copy."""
    if "torch._compile" in sys.modules:
        with contextlib.suppress(Exception):
            importlib.import_module("torch._dynamo")


def _leads_to_card(torch: Any, name: str) -> Callable[..., bool]:
    """A predicate on the arguments of a module's method `name`: does it move it to the card?"""
    if name == "cuda":
        return lambda *arguments, **options: True

    def is_point(module: Any, *arguments: Any, **options: Any) -> bool:
        try:
            device = torch._C._nn._parse_to(*arguments, **options)[0]
        except Exception:
            return False  # the method itself reports what is wrong
        return device is not None and device.type == "cuda"

    return is_point


def _why_not_copied() -> str | None:
    """Why a copy of this process would not be the script, or None if it would."""
    reason = fork_server.why_not_forkable()
    if reason is not None:
        return reason
    if not _is_the_job_itself():
        return "the job is a shell script or a launcher, and this process is one of its parts"
    if _has_children():
        return "the script has started other processes"
    for number in _open_files():
        if not _can_be_shared(number):
            return "the script has a file open that copies would share"
    return None


def _is_the_job_itself() -> bool:
    """Whether the command line started this process directly. If not, it may be one of several."""
    with contextlib.suppress(OSError):
        parent = os.path.basename(os.readlink(f"/proc/{os.getppid()}/exe"))
        # A command that was replaced while it runs is `ghostgpu (deleted)`.
        return parent.split(" ")[0] == "ghostgpu"
    return False


def _has_children() -> bool:
    for thread in os.listdir("/proc/self/task"):
        path = f"/proc/self/task/{thread}/children"
        with contextlib.suppress(OSError), open(path, encoding="ascii") as file:
            if file.read().strip():
                return True
    return False


def _open_files() -> list[int]:
    numbers = [int(name) for name in os.listdir("/proc/self/fd")]
    return [number for number in numbers if number >= _FIRST_OF_SCRIPT]


def _can_be_shared(number: int) -> bool:
    """Whether a copy may share this file: it is only read, or a device such as /dev/null."""
    import fcntl

    try:
        # Files opened by Python are not inheritable, so this one was open before the script.
        if os.get_inheritable(number):
            return True
        mode = os.fstat(number).st_mode
        flags = fcntl.fcntl(number, fcntl.F_GETFL)
    except OSError:
        return True  # closed by now: the descriptor that listed the folder
    if stat.S_ISREG(mode):
        return flags & os.O_ACCMODE == os.O_RDONLY
    return stat.S_ISCHR(mode) or stat.S_ISDIR(mode)


def _positions() -> dict[int, int]:
    """The read position of each file that Python has opened."""
    found = {}
    for number in _open_files():
        with contextlib.suppress(OSError):
            if stat.S_ISREG(os.fstat(number).st_mode) and not os.get_inheritable(number):
                found[number] = os.lseek(number, 0, os.SEEK_CUR)
    return found


def _read_files_alone(positions: dict[int, int]) -> None:
    """Reopen every file that is being read: after a fork, both processes share one position."""
    for number, position in positions.items():
        try:
            again = os.open(f"/proc/self/fd/{number}", os.O_RDONLY)
        except OSError:
            continue  # cannot be reopened: if this copy fails, the command line starts a whole run
        os.lseek(again, position, os.SEEK_SET)
        os.dup2(again, number, inheritable=False)
        os.close(again)


def _be_silent() -> None:
    """Release the script's terminal or pipes: a reader may be waiting for them to close."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(_FIRST_OF_SCRIPT):
        os.dup2(nothing, number)
    os.close(nothing)


def _write_output_to(path: str) -> None:
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
