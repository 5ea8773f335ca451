"""The agent: works inside the rehearsed script's Python process and writes down what it sees.

In goes the session that the command line described; out come `agent-<pid>.json` in the run's
folder, a clean stop after the steps that were asked for, and protection for existing checkpoints.
Nothing here may disturb a run: a fault of the agent becomes an assumption in the answer.

This file is executed by every Python process of a rehearsal, torch or not, and so does next to
nothing. The work starts in `activation`, once torch has been imported.
"""

from __future__ import annotations

import os

__all__ = ["install_import_hook"]


def install_import_hook() -> None:
    """Watch for the import of torch, and start the agent when it comes."""
    from . import hooks

    hooks.install()
    if "RANK" in os.environ:
        # A rank may end before it imports torch, and the others wait for it.
        from .rank_processes import note_started

        note_started()
