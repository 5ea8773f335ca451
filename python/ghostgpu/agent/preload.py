"""The agent's interface to the stand-in library: functions that the preloaded library exports.

If the library is missing from a process of a rehearsal, the script must not continue: it would find
the machine's real GPU.
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any, Callable

from .shared_numbers import PRELOAD_BLOCKED_FILE

EXIT_OWN_FAILURE = 2

_UNIQUE_ID_BYTES = 128
"""`NCCL_UNIQUE_ID_BYTES`."""

_kept_alive: list[Any] = []
"""Callbacks given to the library: ctypes frees them with their last Python reference."""


def _exported(name: str) -> Any:
    """An exported function of the library, or None."""
    try:
        return getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError):
        return None


def require() -> None:
    """End the process, with one clear sentence, unless the stand-in library is loaded."""
    if _exported("ghostgpu_api_version") is not None:
        return
    sentence = (
        "the stand-in CUDA library was not loaded into this Python process "
        f"({sys.executable}): the system ignored LD_PRELOAD, or the script removed it"
    )
    hint = (
        "use a dynamically linked Python without setuid or file capabilities, and start child "
        "processes with the environment they inherit"
    )
    _leave_marker(sentence)
    sys.stderr.write(f"error: {sentence}\n\nhint: {hint}\n")
    sys.stderr.flush()
    sys.stdout.flush()
    # Not SystemExit: a script that survives a failed `import torch` must not survive this.
    os._exit(EXIT_OWN_FAILURE)


def _leave_marker(sentence: str) -> None:
    from . import session

    try:
        path = os.path.join(session.load().run_dir, PRELOAD_BLOCKED_FILE)
        with open(path, "w", encoding="utf-8") as file:
            file.write(sentence + "\n")
    except (OSError, ValueError, KeyError):
        pass  # the message on stderr and the exit code still say it


def set_code_architectures(arch_numbers: list[int]) -> None:
    """Tell the library which architectures the installed torch ships code for."""
    function = _exported("ghostgpu_set_code_architectures")
    if function is None:
        return
    function.restype = None
    array = (ctypes.c_int32 * len(arch_numbers))(*arch_numbers)
    function(array, ctypes.c_uint32(len(arch_numbers)))


def continue_in(run_dir: str) -> bool:
    """Move this fork of the script into its own run; false if that fails."""
    function = _exported("ghostgpu_continue_in")
    return function is not None and function(ctypes.c_char_p(os.fsencode(run_dir))) == 0


def reopen_session() -> bool:
    """Start this copy of the script, which has not used CUDA yet, in its own session."""
    function = _exported("ghostgpu_reopen_session")
    return function is not None and function() == 0


def set_refusal_callback(callback: Callable[[str], None]) -> None:
    """Have the library call back when the script uses a function that is not simulated."""
    function = _exported("ghostgpu_set_refusal_callback")
    if function is None:
        return
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_char_p)

    def called(name: bytes | None) -> None:
        callback((name or b"?").decode("utf-8", "replace"))

    pointer = prototype(called)
    _kept_alive.append(pointer)
    function.restype = None
    function(pointer)


def set_line_callback(callback: Callable[[], str | None]) -> None:
    """Have the library ask which line of the script makes a call that involves other ranks."""
    function = _exported("ghostgpu_set_line_callback")
    if function is None:
        return
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32)

    def called(text: int, room: int) -> None:
        line = (callback() or "").encode("utf-8", "replace")[:room]
        ctypes.memmove(text, line, len(line))

    pointer = prototype(called)
    _kept_alive.append(pointer)
    function.restype = None
    function(pointer)


def set_members_callback(
    callback: Callable[[bytes | None, int], list[bool] | None],
) -> None:
    """Have the library ask which ranks of a group run, given its id or the colour of a split."""
    function = _exported("ghostgpu_set_members_callback")
    if function is None:
        return
    bytes_pointer = ctypes.POINTER(ctypes.c_uint8)
    prototype = ctypes.CFUNCTYPE(
        ctypes.c_int, bytes_pointer, ctypes.c_int, bytes_pointer, ctypes.c_uint32
    )

    def called(id_pointer: Any, color: int, places: Any, room: int) -> int:
        id_bytes = ctypes.string_at(id_pointer, _UNIQUE_ID_BYTES) if id_pointer else None
        are_run = callback(id_bytes, color)
        if are_run is None or len(are_run) > room:
            return 0
        for place, is_run in enumerate(are_run):
            places[place] = is_run
        return len(are_run)

    pointer = prototype(called)
    _kept_alive.append(pointer)
    function.restype = None
    function(pointer)


def set_rank(rank: int) -> None:
    """Tell the library which rank of its job this process is."""
    function = _exported("ghostgpu_set_rank")
    if function is not None:
        function.restype = None
        function(ctypes.c_uint32(rank))


def wait_for_ranks() -> bool:
    """Wait until all ranks have made the calls that this one has made; false if one never will."""
    function = _exported("ghostgpu_wait_for_ranks")
    return function is not None and function() == 0


def forget_handed_on() -> None:
    """Have the agent, not the library, answer reads of what a collective wrote."""
    function = _exported("ghostgpu_forget_handed_on")
    if function is not None:
        function()


def step_noter() -> Callable[[], object]:
    """A function that tells the library that an optimizer step has ended."""
    return _noter("ghostgpu_note_step")


def dispatch_noter() -> Callable[[], object]:
    """A function that tells the library that Python handles an operator before the card gets it."""
    return _noter("ghostgpu_note_dispatch")


def _noter(name: str) -> Callable[[], object]:
    """An exported function without arguments, looked up once because it is called often."""
    function = _exported(name)
    if function is None:
        return lambda: None
    function.restype = None
    function.argtypes = []
    noter: Callable[[], object] = function
    return noter


class ReadbackAnswerer:
    """Sets what the calling thread's next copy from the card reads."""

    def __init__(self) -> None:
        self._answer = _exported("ghostgpu_answer_next_readback")
        self._forget = _exported("ghostgpu_forget_next_readback")
        if self._answer is None or self._forget is None:
            raise RuntimeError("the library cannot answer readbacks")
        self._answer.restype = self._forget.restype = None
        self._answer.argtypes = [ctypes.c_uint64, ctypes.c_uint32]

    def answer(self, value: int, size_bytes: int) -> None:
        """Make the next copy of exactly this size read `value`."""
        self._answer(value & 0xFFFF_FFFF_FFFF_FFFF, size_bytes)

    def forget(self) -> None:
        """Withdraw an answer that was not used."""
        self._forget()
