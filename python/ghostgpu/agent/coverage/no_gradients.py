"""Notices where the user's code switches gradients off: as a block, or around a function.

`with torch.no_grad()` is how many scripts evaluate that never call `eval()`.
"""

from __future__ import annotations

import functools
import os
import sys
from types import FrameType
from typing import Any, Callable

from ...tricks.dynamo_shield import shielded
from ...tricks.user_code import is_own
from ..guard import quietly
from ..stacks import is_user_code

_DECORATOR_FILE = os.path.join("torch", "utils", "_contextlib.py")


class NoGradients:
    """Watches `torch.no_grad` and `torch.inference_mode`."""

    def __init__(self, torch: Any, note: Callable[[str, int], None]) -> None:
        """`note` gets the file and the line: of the `with`, or of the function's first line."""
        self._torch = torch
        self._note = quietly(note)
        self._files: dict[str, str | None] = {}
        """Absolute paths of the user's files; None for other files."""

    def install(self) -> None:
        """Wrap what a `with` statement calls."""
        self._wrap(self._torch.no_grad)
        self._wrap(self._torch.inference_mode)

    def _wrap(self, kind: Any) -> None:
        original = kind.__enter__
        notice = quietly(self._notice)

        @functools.wraps(original)
        def enter(context: Any) -> Any:
            if getattr(context, "mode", True):
                notice(sys._getframe(1))
            return original(context)

        kind.__enter__ = shielded(self._torch, enter)

    def _notice(self, frame: FrameType | None) -> None:
        # On older torch, what hides this from Dynamo is a frame of its own.
        while frame is not None and is_own(frame.f_code.co_filename):
            frame = frame.f_back
        if frame is None:
            return
        file, line = frame.f_code.co_filename, frame.f_lineno or 0
        if file.endswith(_DECORATOR_FILE):
            code = getattr(frame.f_locals.get("func"), "__code__", None)
            if code is None:
                return
            file, line = code.co_filename, code.co_firstlineno
        if file not in self._files:
            self._files[file] = os.path.abspath(file) if is_user_code(file) else None
        users_file = self._files[file]
        if users_file is not None:
            self._note(users_file, line)
