"""Makes warnings name the user's line, not one of the agent's.

The agent wraps PyTorch's functions, so the line to which C++ attributes a warning is often in the
agent, where the user would search in vain.
"""

from __future__ import annotations

import os
import sys
import warnings
from types import FrameType
from typing import Any, Callable

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def install_warning_places() -> None:
    """From now on, show warnings with the innermost line that is not in this package."""
    # Python's own way of showing a warning ends here, unless something else was installed.
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
