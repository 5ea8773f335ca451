"""What both start-up hooks (`*/inject/sitecustomize.py`) share: they give way to others.

Imports only `os` and `sys`, because every Python process executes it.
"""

from __future__ import annotations

import os
import sys


def give_way(own_folder: str) -> None:
    """Run the next `sitecustomize`: the one Python would have found without this folder."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != own_folder]
    own_module = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        # `import` expects to find the module that it started to load.
        if own_module is not None:
            sys.modules.setdefault("sitecustomize", own_module)
