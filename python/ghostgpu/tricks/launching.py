"""Tricks in a training on a real card: started when torch is imported, reported at the end.

Every Python process of `ghostgpu launch` loads this, with or without torch, so it imports almost
nothing.
"""

from __future__ import annotations

import os
import sys

from .import_watch import ImportWatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .starting import Started

VARIABLE = "GHOSTGPU_TRICKS"
"""The variable with the tricks of a launched training, as JSON: names with their options."""


def install() -> None:
    """Wait for torch, once per process; allocator settings are applied before that."""
    ImportWatch({"torch"}, _start).install()
    if '"allocator"' in os.environ[VARIABLE]:
        from .allocator import put_into_environment

        for name, options in _requests():
            if name == "allocator":
                put_into_environment(options.get("settings"))


def _requests() -> list[tuple[str, dict[str, str]]]:
    import json

    requests = json.loads(os.environ[VARIABLE])
    return [(str(each["name"]), dict(each.get("options", {}))) for each in requests]


def _start(torch: Any) -> None:
    import atexit

    from . import start
    from .refusal import ending_the_script

    try:
        started = start(torch, _requests(), ending_the_script)
    except Exception as error:
        raise ending_the_script(
            f"the tricks do not work with this torch {torch.__version__} ({error!r})",
            "leave out the one that the error names, and please report it",
        ) from error
    atexit.register(_tell, started, os.getpid())


def _tell(started: Started, process: int) -> None:
    # Only rank 0 reports, and not a forked child of it.
    if os.getpid() != process or os.environ.get("RANK", "0") != "0":
        return
    accounts = started.accounts()
    # A launcher such as torchrun imports torch too but trains nothing.
    if not started.hooks.has_trained and all(each.did is None for each in accounts):
        return
    for each in accounts:
        did = each.did or f"found no place: {each.nothing_because}"
        sys.stderr.write(f"ghostgpu: {each.name}: {did}\n")
