"""Keeps the agent's own faults away from the user's script."""

from __future__ import annotations

import functools
import traceback
from typing import Any, Callable, TypeVar

from .report import RECORD

Result = TypeVar("Result")


def quietly(function: Callable[..., Result]) -> Callable[..., Result | None]:
    """Run `function`; if it fails, write a note into the report and return None.

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


def note_fault(where: str, error: BaseException) -> None:
    """Record a fault of the agent, with the place it came from."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    place = f"{last[0].name}, line {last[0].lineno}" if last else "unknown place"
    RECORD.note(f"the agent failed in {where} ({place}): {type(error).__name__}: {error}")
