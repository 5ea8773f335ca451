"""What both start-up hooks (`*/inject/sitecustomize.py`) have in common: they give way to others.

Kept free of imports beyond `os` and `sys`: it is executed by every Python process.
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
        # `import` insists on finding what it started to load.
        if own_module is not None:
            sys.modules.setdefault("sitecustomize", own_module)
