"""Warnings name the line that caused them, not the agent's.

The agent stands around PyTorch's functions, so the line that C++ takes a warning for is often one
of the agent's. The user looks for it in vain in the own code.
"""

from __future__ import annotations

import os
import sys
import warnings
from types import FrameType
from typing import Any, Callable

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def install_warning_places() -> None:
    """From now on, warnings are shown with the innermost line that is not of this package."""
    # Python itself ends there, unless somebody has put another function in its place.
    shown: Callable[[Any], None] = vars(warnings)["_showwarnmsg_impl"]

    def show(message: Any) -> None:
        if str(message.filename).startswith(_PACKAGE):
            frame = _caller()
            if frame is not None:
                message.filename, message.lineno = frame.f_code.co_filename, frame.f_lineno
        shown(message)

    vars(warnings)["_showwarnmsg_impl"] = show


def _caller() -> FrameType | None:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_PACKAGE) and file != warnings.__file__:
            return frame
        frame = frame.f_back
    return None
