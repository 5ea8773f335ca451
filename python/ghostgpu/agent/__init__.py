"""The agent: runs inside the rehearsed script's Python process and reports what it observes.

It reads the session that the command line wrote, writes `agent-<pid>.json` into the run folder,
stops the script cleanly after the requested steps, and protects existing checkpoints. Nothing here
may disturb a run: a fault of the agent becomes an assumption in the answer.

Every Python process of a rehearsal executes this file, with or without torch, so it does almost
nothing. The work starts in `activation`, once torch has been imported.
"""

from __future__ import annotations

import os

__all__ = ["install_import_hook"]


def install_import_hook() -> None:
    """Start the agent as soon as torch is imported."""
    from . import hooks

    hooks.install()
    if "RANK" in os.environ:
        # A rank may end before it imports torch, and the others wait for it.
        from .ranks.rank_processes import note_started

        note_started()
