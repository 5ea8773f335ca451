"""How the agent writes to the memory log: through functions of the stand-in library.

`crates/session/src/memory_log.rs` defines the entries.
"""

from __future__ import annotations

import ctypes
import os
import threading
from array import array
from collections.abc import Iterable
from typing import Any


class MemoryLog:
    """The memory log of this process."""

    def __init__(self) -> None:
        library = ctypes.CDLL(None)
        self._start = library.ghostgpu_start_memory_log
        self._start.argtypes = [ctypes.c_char_p]
        self._stop = library.ghostgpu_stop_memory_log
        self._flush = library.ghostgpu_flush_memory_log
        self._note_stage = library.ghostgpu_note_stage
        self._note_stage.argtypes = [ctypes.c_uint8, ctypes.c_uint32]
        self._note_owners = library.ghostgpu_note_owners
        self._note_owners.argtypes = [
            *(ctypes.c_uint8, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32)
        ]
        self._name_module = library.ghostgpu_name_module
        self._name_module.argtypes = [ctypes.c_uint32, ctypes.c_char_p, ctypes.c_char_p]
        self._note_output = library.ghostgpu_note_module_output
        self._note_output.argtypes = [ctypes.c_uint32, ctypes.c_uint64]
        self._note_output.restype = None
        self._name_text = library.ghostgpu_name_text
        self._name_text.argtypes = [ctypes.c_uint32, ctypes.c_char_p]
        for function in (self._stop, self._flush, self._note_stage, self._note_owners):
            function.restype = None
        self._name_module.restype = self._name_text.restype = None
        self._cell = library.ghostgpu_context_cell
        self._cell.restype = ctypes.c_void_p
        self._texts: dict[str, int] = {"": 0}
        self.is_on = False

    def start(self, path: str) -> None:
        """Begin the log; raises OSError if its file cannot be created."""
        if self._start(os.fsencode(path)) != 0:
            raise OSError(f"cannot write {path}")
        self.is_on = True

    def flush(self) -> None:
        """Write everything logged so far to disk."""
        self._flush()

    def stop(self) -> None:
        """End the log without a last flush."""
        self.is_on = False
        self._stop()

    def note_stage(self, stage: int, step: int) -> None:
        """From here on the script is in this stage."""
        if self.is_on:
            self._note_stage(stage, step)

    def note_owners(self, kind: int, owners: Iterable[tuple[int, str]]) -> None:
        """The memory at these addresses is of this kind, under these names."""
        if not self.is_on:
            return
        addresses, names = array("Q"), array("I")
        for address, name in owners:
            if address:
                addresses.append(address)
                names.append(self._number_of(name))
        if addresses:
            self._note_owners(
                kind, addresses.buffer_info()[0], names.buffer_info()[0], len(addresses)
            )

    def name_module(self, number: int, path: str, class_name: str) -> None:
        """From here on this number means this module."""
        self._name_module(number, _c_string(path), _c_string(class_name))

    def note_module_output(self, number: int, size_bytes: int) -> None:
        """The tensors that a module returned have this many bytes."""
        self._note_output(number, size_bytes)

    def module_cell(self) -> Any:
        """The calling thread's cell, in which the number of the running module is written."""
        return ctypes.c_uint32.from_address(self._cell())

    def _number_of(self, text: str) -> int:
        number = self._texts.get(text)
        if number is None:
            number = self._texts[text] = len(self._texts)
            self._name_text(number, _c_string(text))
        return number


class ThreadCells(threading.local):
    """Each thread's module cell."""

    def __init__(self, log: MemoryLog) -> None:
        self.cell = log.module_cell()


def _c_string(text: str) -> bytes:
    return text.replace("\0", "").encode("utf-8", "replace")
