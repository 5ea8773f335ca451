"""Runs a piece of a test in a forked copy of this process, where tricks then stay."""

from __future__ import annotations

import os
import pickle
import sys
import traceback
import warnings
from typing import Any, Callable


def in_a_copy(work: Callable[[], Any]) -> Any:
    """What `work` returns, which must be plain values; its failure fails the test."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # Newer Pythons warn of threads, which wait for work and hold nothing.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            answer = (True, work())
        except BaseException:
            answer = (False, traceback.format_exc())
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(answer, pipe)
        sys.stdout.flush()
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        is_done, answer = pickle.loads(pipe.read() or pickle.dumps((False, "it was killed")))
    os.waitpid(child, 0)
    assert is_done, answer
    return answer
