"""Keeps faults in our own bookkeeping out of the user's script, and reports them.

Only for what a trick looks up or records. What it does to the training is not guarded: after half
of a trick's work, a step must not continue as if nothing had happened.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Callable, TypeVar

Result = TypeVar("Result")

Teller = Callable[[str, BaseException], object]


def _say(where: str, error: BaseException) -> None:
    sys.stderr.write(f"ghostgpu: a trick failed in {where} ({type(error).__name__}: {error})\n")


_tell: Teller = _say


def tell_faults_to(tell: Teller) -> None:
    """Call `tell` with the place and the error of each fault, instead of printing it."""
    global _tell
    _tell = tell


def quietly(function: Callable[..., Result]) -> Callable[..., Result | None]:
    """Run `function`; if it fails, tell the fault and return None.

    `BaseException`s pass, and so do refusals: the user must read those.
    """
    from .refusal import Refused

    @functools.wraps(function)
    def guarded(*arguments: Any, **options: Any) -> Result | None:
        try:
            return function(*arguments, **options)
        except Refused:
            raise
        except Exception as error:
            _tell(function.__qualname__, error)
            return None

    return guarded
