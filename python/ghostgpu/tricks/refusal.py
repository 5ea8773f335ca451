"""A trick that cannot be right here says so before the first step: the reason, and what to do."""

from __future__ import annotations

import sys
from typing import Callable


class Refused(Exception):
    """The reason why a trick cannot be applied, as a sentence, and an alternative."""

    def __init__(self, reason: str, alternative: str) -> None:
        super().__init__(f"{reason}\n\nhint: {alternative}")
        self.reason = reason
        self.alternative = alternative


Refusal = Callable[[str, str], BaseException]
"""Makes the exception that ends the script, of a reason and an alternative."""


def ending_the_script(reason: str, alternative: str) -> BaseException:
    """Says it and ends the process as wrong usage does, whatever the script catches."""
    sys.stderr.write(f"ghostgpu: {reason}\n\nhint: {alternative}\n")
    sys.stderr.flush()
    return SystemExit(2)
