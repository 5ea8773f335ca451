"""Out-of-memory errors: where the script was, what it was doing, and whether it ended there."""

from __future__ import annotations

import contextlib
import functools
import re
import sys
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any, Callable

from ..tricks.dynamo_shield import shielded
from . import stages
from .guard import quietly
from .report import RECORD, Oom
from .stacks import current_frames, describe


def _unknown_moment(frames: list[FrameType]) -> str | None:
    return None


moment: Callable[[list[FrameType]], str | None] = _unknown_moment
"""Which part of a training a stack belongs to; set by `coverage`."""

MAX_OOMS = 100
"""A script that searches for a batch size may cause thousands; the first and the last are kept."""


class OomObserver:
    """Records every out-of-memory error of PyTorch's allocator as it happens.

    `also` is called after each has been recorded.
    """

    def __init__(self, torch: Any, also: Callable[[], object]) -> None:
        self._torch = torch
        self._also = also
        self._follows_exceptions = False

    def install(self) -> None:
        """Attach to the allocator as soon as the script starts CUDA, and no earlier."""
        if hasattr(self._torch._C, "_cuda_attach_out_of_memory_observer"):
            self._follow_exceptions()
            self._torch.cuda._lazy_call(quietly(self._attach))

    def _follow_exceptions(self) -> None:
        """See which errors become an exception in Python.

        PyTorch catches those of convolution workspaces itself, in C++, and goes on with a smaller
        workspace: the script did not run out of memory there.
        """
        error = getattr(self._torch.cuda, "OutOfMemoryError", None)
        if not isinstance(error, type):
            return
        original: Callable[..., None] = error.__init__  # type: ignore[misc]
        note = quietly(_note_raised)

        @functools.wraps(original)
        def noting(self: BaseException, *arguments: Any, **options: Any) -> None:
            original(self, *arguments, **options)
            note(str(self))

        error.__init__ = noting  # type: ignore[misc]
        self._follows_exceptions = True

    def _attach(self) -> None:
        # The `cudaMallocAsync` allocator has no observers. An error that ends the script is still
        # found, by its traceback, when the script ends.
        with contextlib.suppress(RuntimeError):
            observer = shielded(self._torch, quietly(self._observe))
            self._torch._C._cuda_attach_out_of_memory_observer(observer)

    def _observe(self, device: int, requested: int, total: int, free: int) -> None:
        frames = current_frames()
        _remember(
            Oom(
                device=int(device),
                requested_bytes=int(requested),
                message="",
                step=RECORD.report.steps,
                stage=stages.stage_of(frames, self._torch, RECORD.report.steps),
                stack=describe(frames),
                moment=moment(frames),
            ),
            is_raised=not self._follows_exceptions,
        )
        self._also()


_not_raised: Oom | None = None
"""The last error of the allocator, as long as it has not become an exception."""


def _remember(oom: Oom, is_raised: bool = True) -> None:
    global _not_raised
    drop_not_raised()
    ooms = RECORD.report.ooms
    if len(ooms) >= MAX_OOMS:
        ooms.pop()
    ooms.append(oom)
    _not_raised = None if is_raised else oom


def _note_raised(message: str) -> None:
    global _not_raised
    if _not_raised is not None and _could_be(_not_raised, message):
        _not_raised = None


def drop_not_raised() -> None:
    """Count the last error instead of listing it if PyTorch went on by itself."""
    global _not_raised
    ooms = RECORD.report.ooms
    if _not_raised is not None and ooms and ooms[-1] is _not_raised and not ooms[-1].is_fatal:
        ooms.pop()
        RECORD.report.workspace_retries += 1
    _not_raised = None


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception is PyTorch's out-of-memory error (the type moved between versions)."""
    return type(error).__name__ == "OutOfMemoryError" or (
        isinstance(error, RuntimeError)
        and ("CUDA out of memory" in str(error) or "CUDA error: out of memory" in str(error))
    )


_LIBRARIES_WITHOUT_MEMORY = re.compile(
    r"unable to find an engine to execute this computation"
    r"|Unable to find a valid cuDNN algorithm"
    r"|unable to find (?:any |a valid )?execution plan"
    r"|No execution plans? (?:built|support)"
    r"|(?:CUBLAS|CUDNN|CUSOLVER|CUSPARSE)_STATUS_(?:ALLOC_FAILED|NOT_INITIALIZED)"
    r"|CUFFT_ALLOC_FAILED"
)
"""Errors that libraries raise when an allocation failed. Each has other causes too."""


def is_want_of_memory(error: BaseException) -> bool:
    """Whether a library gave up because an allocation failed.

    PyTorch catches out-of-memory errors of workspaces and tries other algorithms; when none is
    left, the error that it raises no longer mentions memory.
    """
    return (
        isinstance(error, RuntimeError)
        and _LIBRARIES_WITHOUT_MEMORY.search(str(error)) is not None
        and bool(RECORD.report.ooms)
        and RECORD.report.ooms[-1].step == RECORD.report.steps
    )


def find_out_of_memory(error: BaseException | None) -> BaseException | None:
    """The out-of-memory error behind an exception: itself, its cause or its context."""
    for says_so in (is_out_of_memory, is_want_of_memory):
        for each in _chain(error):
            if says_so(each):
                return each
    return None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def note_fatal(error: BaseException, torch: Any) -> None:
    """Record that this exception ended the script (or one of its threads or processes).

    The errors that cuDNN's search for an algorithm meets and survives never get here: PyTorch
    swallows them in C++.
    """
    oom_error = find_out_of_memory(error)
    if oom_error is None:
        return
    message = str(oom_error)
    ooms = RECORD.report.ooms
    if not ooms or not _could_be(ooms[-1], message):
        frames = _frames_of_traceback(oom_error.__traceback__)
        _remember(
            Oom(
                device=_device_in(message),
                requested_bytes=_requested_bytes_in(message),
                message="",
                step=RECORD.report.steps,
                stage=stages.stage_of(frames, torch, RECORD.report.steps),
                stack=describe(frames),
                moment=moment(frames),
            )
        )
    ooms[-1].message = message
    ooms[-1].is_fatal = True


def note_exit(torch: Any) -> None:
    """Called at `sys.exit` with a failure: the script may have caught an OOM and given up."""
    error = sys.exc_info()[1]
    if error is not None:
        note_fatal(error, torch)


_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def _could_be(oom: Oom, message: str) -> bool:
    """Whether an observed error may be the one with this message, whose figures are rounded."""
    told = _requested_bytes_in(message)
    return told == 0 or abs(told - oom.requested_bytes) <= max(told // 50, 1024)


def _requested_bytes_in(message: str) -> int:
    found = re.search(r"Tried to allocate ([0-9.]+) (bytes|KiB|MiB|GiB)", message)
    return int(float(found[1]) * _UNITS[found[2]]) if found else 0


def _device_in(message: str) -> int:
    found = re.search(r"GPU (\d+)", message)
    return int(found[1]) if found else 0


def _frames_of_traceback(traceback: TracebackType | None) -> list[FrameType]:
    frames = []
    while traceback is not None:
        frames.append(traceback.tb_frame)
        traceback = traceback.tb_next
    return frames
