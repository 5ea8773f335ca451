"""What a rank died of, where a signal such as SIGSEGV leaves it no time to report.

Python's `faulthandler` writes the signal and the stack into a file of the run's folder. It runs
from the start of a rank on, before torch is imported, so this file imports next to nothing.
"""

from __future__ import annotations

import faulthandler
import os

from ..shared_numbers import RANK_FAULT_PREFIX

_file: object = None
"""Kept open: a process that dies cannot open it any more."""


def note_fatal_signals(folder: str) -> None:
    """From now on, let a fatal signal leave a file behind, unless the user wants it elsewhere."""
    global _file
    if _file is not None or faulthandler.is_enabled():
        return
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, RANK_FAULT_PREFIX + str(os.getpid()))
    _file = file = open(path, "wb", buffering=0)  # noqa: SIM115 - it lives as long as the process
    faulthandler.enable(file, all_threads=False)
    os.register_at_fork(after_in_child=_stop)


def _stop() -> None:
    """What a rank has started, workers that load data, say, may die without ending the rank."""
    global _file
    if _file is not None:
        faulthandler.disable()
        _file = None
