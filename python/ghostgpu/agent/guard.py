"""Keeps the agent's own faults out of the user's script and reports them in the answer.

The script continues as if the agent were not there. The answer then rests on less than it should,
so every fault becomes an assumption.
"""

from __future__ import annotations

import functools
import traceback
from typing import Any, Callable, TypeVar

from .report import RECORD

Result = TypeVar("Result")


def quietly(function: Callable[..., Result]) -> Callable[..., Result | None]:
    """Run `function`; if it fails, report the fault and return None.

    `BaseException`s pass: that is how the agent deliberately stops a script.
    """

    @functools.wraps(function)
    def guarded(*arguments: Any, **options: Any) -> Result | None:
        try:
            return function(*arguments, **options)
        except Exception as error:
            note_fault(function.__qualname__, error)
            return None

    return guarded


def install(
    part: str, unknown: str, function: Callable[..., Result], *arguments: Any
) -> Result | None:
    """Install one part of the agent; if that fails, report what is `unknown` without it.

    Parts are independent: a new torch that breaks one must not disable the others.
    """
    try:
        return function(*arguments)
    except Exception as error:
        RECORD.fault(f"could not install its part `{part}` ({_words(error)}): {unknown}")
        return None


def note_fault(where: str, error: BaseException) -> None:
    """Report a fault of the agent while the script runs, with the place it came from."""
    RECORD.fault(f"failed in {where} ({_words(error)}): what it watches there may be missing")


def _words(error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1:]
    place = f" at {last[0].name}, line {last[0].lineno}" if last else ""
    return f"{type(error).__name__}: {error}{place}"
