"""Which truth value makes an `assert` pass, judged by the line that reads it."""

from __future__ import annotations

import linecache
import re
import sys
from types import FrameType

from ..own_frames import AGENT_FOLDER

_ASSERTION = re.compile(r"\s*assert\b\s*\(?\s*(?P<no>not\b)?")


def asserted() -> bool | None:
    """The value with which the calling line's `assert` passes; None if it is no `assert`."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(AGENT_FOLDER):
        frame = frame.f_back
    if frame is None:
        return None
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno, frame.f_globals)
    assertion = _ASSERTION.match(line)
    return None if assertion is None else assertion["no"] is None
