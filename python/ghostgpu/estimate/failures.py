"""Errors for the user, each with a hint."""

from __future__ import annotations

import sys
from types import TracebackType


class CannotEstimate(Exception):
    """A sentence and a hint. The command line shows both, without a traceback."""

    def __init__(self, sentence: str, hint: str | None = None) -> None:
        super().__init__(sentence)
        self.ghostgpu_declined = (sentence, hint)
        """The agent looks for this name, and reports it."""


def hide_tracebacks(*kinds: type[BaseException]) -> None:
    """Leave reporting of `CannotEstimate`, and of these, to the command line.

    A traceback through our own script would mean nothing to the user.
    """
    original = sys.excepthook
    hidden: tuple[type[BaseException], ...] = (CannotEstimate, *kinds)

    def hook(
        kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        if not isinstance(error, hidden):
            original(kind, error, traceback)

    sys.excepthook = hook


def need_package(name: str) -> None:
    """Raise an error if a package is missing."""
    from importlib.util import find_spec

    if find_spec(name) is None:
        raise CannotEstimate(
            f"this needs {name}, which is not installed in the python {sys.executable}",
            f"install it there (`pip install {name}`), or name another python with `--python PATH`",
        )
