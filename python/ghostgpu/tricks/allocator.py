"""Settings of PyTorch's caching allocator, such as `expandable_segments:True`.

The allocator reads them from the environment when it starts, so they are set before torch is
imported. Settings of the user's own stay, except those that are named here.

Saves: memory that is cached in pieces too small to be used (fragmentation).
Costs: depends on the setting; `expandable_segments:True` costs next to nothing.
Numbers: identical.
Conflicts: none.
"""

from __future__ import annotations

import os
import re

from .trick import Trick

VARIABLES = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
"""Newer torch prefers the first, older torch knows only the second."""


class Allocator(Trick):
    """Only reports: the settings are already in the environment."""

    name = "allocator"

    def install(self) -> None:
        put_into_environment(self.options["settings"])

    def did(self) -> str | None:
        return f"{self.options['settings']} in {VARIABLES[1]}"

    def line(self) -> str:
        return f"export {VARIABLES[1]}={self.options['settings']}"


def put_into_environment(settings: str | None) -> None:
    """Set them for this process and its children; a second call changes nothing."""
    settings = settings or "expandable_segments:True"
    for variable in VARIABLES:
        present = os.environ.get(variable)
        # If the user has set only one variable, setting both could make torch prefer the other.
        if present or variable == VARIABLES[1]:
            os.environ[variable] = merged(present, settings)


def merged(present: str | None, settings: str) -> str:
    """The present settings without those that are replaced, followed by the new ones."""
    named = {_name(each) for each in _split(settings)}
    kept = [each for each in _split(present or "") if _name(each) not in named]
    return ",".join([*kept, *_split(settings)])


def _split(settings: str) -> list[str]:
    # Commas in brackets belong to a value: `roundup_power2_divisions:[256:1,>:4]`.
    parts = re.split(r",(?![^\[]*\])", settings)
    return [part.strip() for part in parts if part.strip()]


def _name(setting: str) -> str:
    return setting.split(":", 1)[0].strip()
