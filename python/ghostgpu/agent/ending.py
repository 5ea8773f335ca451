"""The end of the process: the last peaks, the exception that ended it, and the report file.

Every way in which a script can end must leave a report: at its last line, by an exception, by the
step limit, by `os._exit` (which is also how forked `multiprocessing` children end), by SIGTERM.
"""

from __future__ import annotations

import atexit
import builtins
import contextlib
import functools
import gc
import io
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from types import FrameType
from typing import Any, Callable

from . import oom
from .guard import quietly
from .memory_fraction import memory_limits
from .peaks import PeakTracker, used_devices
from .report import RECORD, ChildExit, Declined
from .stacks import current_frames, is_user_code, users_line


class Ending:
    """Writes this process's report, exactly once per process that has one to write."""

    def __init__(self, torch: Any, run_dir: str, peaks: PeakTracker) -> None:
        self._torch = torch
        self._run_dir = run_dir
        self._peaks = peaks
        self._is_forked = False
        self._ends_at_once = False
        self._ends_at_once_if_failed: Callable[[], bool] = lambda: False
        self._hard_exit: Callable[[int], object] = os._exit
        self._last_acts: list[Callable[[], None]] = []
        self._farewells: list[Callable[[], None]] = []
        self._explanations: list[Callable[[BaseException], None]] = []
        self._exit_explanations: list[Callable[[str], None]] = []

    def add_last_act(self, act: Callable[[], None]) -> None:
        """Call `act` once, just before the report is written."""
        self._last_acts.append(quietly(act))

    def add_farewell(self, act: Callable[[], None]) -> None:
        """Call `act` if the script comes to its end by itself, after the report is written."""
        self._farewells.append(quietly(act))

    def add_explanation(self, explain: Callable[[BaseException], None]) -> None:
        """Call `explain` with the exception that ends the script."""
        self._explanations.append(quietly(explain))

    def add_exit_explanation(self, explain: Callable[[str], None]) -> None:
        """Call `explain` with the line at which the script calls `sys.exit` with a failure."""
        self._exit_explanations.append(quietly(explain))

    def move_to(self, run_dir: str) -> None:
        """Write the report into the folder of another run."""
        self._run_dir = run_dir

    def end_at_once(self) -> None:
        """Skip Python's own shutdown, which nobody needs in a script that we end.

        Tearing down every module and object takes half the time of a short rehearsal.
        """
        self._ends_at_once = True

    def end_at_once_if_failed(self, applies: Callable[[], bool]) -> None:
        """The same after an exception of the script, if this `applies` then."""
        self._ends_at_once_if_failed = applies

    def forget_parent(self) -> None:
        """Called in a forked child, which writes a report only if it uses CUDA itself."""
        self._is_forked = True
        if threading.current_thread() is threading.main_thread() and (
            signal.getsignal(signal.SIGTERM) == self._on_terminate
        ):
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def install(self) -> None:
        """Hook into every way in which the process can end."""
        atexit.register(self._at_exit)
        self._wrap_hard_exit()
        self._wrap_soft_exit()
        self._wrap_thread_hook()
        self._wrap_process_run()
        self._catch_terminate()

    @quietly
    def _at_exit(self) -> None:
        # The interpreter sets these when it prints a traceback, whatever `sys.excepthook` is.
        error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
        with _undisturbed():
            if isinstance(error, BaseException):
                self._note_exception(error)
            self.write()
        has_failed = isinstance(error, Exception) and self._ends_at_once_if_failed()
        if (self._ends_at_once or has_failed) and not self._is_forked:
            self._leave(error)
        if RECORD.report.exception is None and not self._is_forked:
            for act in self._farewells:
                act()
        _skip_last_collections()

    def _leave(self, error: BaseException | None) -> None:
        """End the process now, with the exit code that it would have had."""
        if isinstance(error, Exception):
            status = 1
        elif error is None and RECORD.report.stopped_by_step_limit:
            status = 0
        else:
            return
        processes: Any = sys.modules.get("multiprocessing.util")
        if processes is not None:
            quietly(processes._exit_function)()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        self._hard_exit(status)

    def write(self) -> None:
        """Write the report as it stands."""
        has_cuda = self._torch.cuda.is_initialized() and not self._torch.cuda._is_in_bad_fork()
        if RECORD.report.pid != os.getpid() or (self._is_forked and not has_cuda):
            return
        RECORD.report.script = _script_name()
        oom.drop_not_raised()
        while self._last_acts:
            self._last_acts.pop(0)()
        if has_cuda:
            # If one of these fails, the rest of the report must still be written.
            RECORD.report.peaks = quietly(self._peaks.fold)() or []
            RECORD.report.memory_limits = quietly(memory_limits)(self._torch) or []
            RECORD.report.total_allocated_bytes = quietly(_total_allocated)(self._torch) or 0
            RECORD.report.cudnn = _cudnn_version(self._torch)
        RECORD.write(self._run_dir)

    def _note_exception(self, error: BaseException) -> None:
        text = str(error).strip().splitlines()
        RECORD.report.exception = type(error).__name__ + (f": {text[0]}" if text else "")
        RECORD.report.exception_at = _users_line_in(error)
        RECORD.report.child_exits = quietly(_child_exits)(error) or []
        declined = getattr(error, "ghostgpu_declined", None)
        if declined is not None:
            RECORD.report.declined = Declined(*declined)
        oom.note_fatal(error, self._torch)
        for explain in self._explanations:
            explain(error)

    def _wrap_hard_exit(self) -> None:
        original = self._hard_exit
        write = quietly(self.write)

        @functools.wraps(original)
        def hard_exit(status: int) -> None:
            write()
            original(status)

        os._exit = hard_exit  # type: ignore[assignment]

    def _wrap_soft_exit(self) -> None:
        """Wrap `sys.exit`, and `exit` and `quit`, which Python offers for interactive use."""
        note = quietly(self._note_exit)

        def noting(original: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(original)
            def soft_exit(*arguments: Any, **options: Any) -> None:
                status = arguments[-1] if arguments else None
                if isinstance(status, (int, str)) and status not in (0, ""):
                    note(status)
                original(*arguments, **options)

            return soft_exit

        sys.exit = noting(sys.exit)
        quitter: Any = type(getattr(builtins, "exit", None))
        if quitter.__name__ == "Quitter":
            quitter.__call__ = noting(quitter.__call__)

    def _note_exit(self, status: int | str) -> None:
        """The script gives up by itself: report where, and the message it exits with."""
        if not is_user_code(current_frames()[-1].f_code.co_filename):
            # `torch.multiprocessing` ends a process so after an exception of the script's, which
            # its parent prints; Python's own `multiprocessing` passes the code on.
            handled = sys.exc_info()[1]
            if isinstance(handled, Exception):
                self._note_exception(handled)
            if RECORD.report.exception is not None:
                return
        oom.note_exit(self._torch)
        line = users_line()
        text = str(status).strip().splitlines() or [""]
        RECORD.report.exception = f"SystemExit at {line}: {text[0]}"
        RECORD.report.exception_at = None
        for explain in self._exit_explanations:
            explain(line)

    def _wrap_thread_hook(self) -> None:
        original = threading.excepthook
        note = quietly(self._note_exception)

        def hook(arguments: threading.ExceptHookArgs) -> None:
            if arguments.exc_value is not None and not isinstance(arguments.exc_value, SystemExit):
                note(arguments.exc_value)
            original(arguments)

        threading.excepthook = hook

    def _wrap_process_run(self) -> None:
        """Wrap the run of `multiprocessing` children: their exceptions reach no other hook."""
        from multiprocessing.process import BaseProcess

        original = BaseProcess.run
        note = quietly(self._note_exception)

        @functools.wraps(original)
        def run(process: BaseProcess) -> None:
            try:
                original(process)
            except Exception as error:
                note(error)
                raise

        patched: Any = BaseProcess
        patched.run = run

    def _catch_terminate(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return  # only the main thread may set handlers
        if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._on_terminate)

    def _on_terminate(self, number: int, frame: FrameType | None) -> None:
        RECORD.report.terminated_at = quietly(users_line)()
        quietly(self.write)()
        # Then die of the signal, as the script would have without us.
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Ignore Ctrl-C for so long: launchers pass it on, and a second one must not cost a report."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        # None stands for a handler that was not set from Python.
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)


def _users_line_in(error: BaseException) -> str | None:
    """The innermost line of the user's code that an exception came through, as `train.py:41`."""
    line = None
    for frame, number in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if is_user_code(file):
            line = f"{os.path.basename(file)}:{number}"
    return line


def _child_exits(error: BaseException) -> list[ChildExit]:
    """How the children ended of which a launcher's exception tells: torchrun's of all of them, that
    of `torch.multiprocessing` of the first."""
    failures: Any = getattr(error, "failures", None)
    if isinstance(failures, dict):
        return [ChildExit(int(each.pid), int(each.exitcode)) for each in failures.values()]
    pid, code = getattr(error, "error_pid", None), getattr(error, "exit_code", None)
    return [ChildExit(pid, code)] if isinstance(pid, int) and isinstance(code, int) else []


def _skip_last_collections() -> None:
    """Skip the interpreter's final garbage collections: a tenth of a short rehearsal.

    They would have flushed files that only a reference cycle keeps alive, so flush those here.
    """
    written = (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)
    for each in gc.get_objects():
        if type(each) in written and not each.closed and each.writable():
            with contextlib.suppress(OSError, ValueError):
                each.flush()
    gc.freeze()


def _script_name() -> str | None:
    """What the user would call this process: the script's name, or that of a package's folder."""
    path = sys.argv[0] if getattr(sys, "argv", None) else ""
    name = os.path.basename(path)
    if name == "__main__.py":
        name = os.path.basename(os.path.dirname(path))
    return name if name not in ("", "-c", "-m", "-") else None


def _total_allocated(torch: Any) -> int:
    statistics = [torch._C._cuda_memoryStats(device) for device in used_devices(torch)]
    return sum(each["allocated_bytes"]["all"]["allocated"] for each in statistics)


def _cudnn_version(torch: Any) -> str | None:
    try:
        number = torch.backends.cudnn.version()
    except RuntimeError:
        number = None  # PyTorch refuses to say it if this cuDNN no longer supports the card
    if number is None:
        return None
    major, rest = divmod(number, 10000) if number >= 90000 else divmod(number, 1000)
    return f"{major}.{rest // 100}.{rest % 100}"
