"""Refusals: a trick that would be wrong for a script gives the reason and an alternative."""

from __future__ import annotations

import sys
from typing import Callable


class Refused(Exception):
    """The reason why a trick cannot be applied, as a sentence, and an alternative."""

    def __init__(self, reason: str, alternative: str) -> None:
        super().__init__(f"{reason}\n\nhint: {alternative}")
        self.reason = reason
        self.alternative = alternative


class LeftTraces(Refused):
    """A refusal after a trial that cannot be undone: the script cannot go on without the trick."""


Refusal = Callable[[str, str], BaseException]
"""Makes the exception that ends the script, from a reason and an alternative."""


def ending_the_script(reason: str, alternative: str) -> BaseException:
    """Prints the refusal and ends the process like wrong usage, whatever the script catches."""
    sys.stderr.write(f"ghostgpu: {reason}\n\nhint: {alternative}\n")
    sys.stderr.flush()
    return SystemExit(2)
