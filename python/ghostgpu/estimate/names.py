"""Suggestions for misspelt names."""

from __future__ import annotations

import difflib
from typing import Iterable


def simplified(name: str) -> str:
    """A name without variations in case, dots, underscores and spaces."""
    return "".join(character for character in name.lower() if character.isalnum())


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint with the closest names."""
    by_simple = {simplified(each): each for each in known}
    wanted = simplified(name)
    close = difflib.get_close_matches(wanted, list(by_simple), n=4, cutoff=0.5)
    close += [each for each in by_simple if wanted and wanted in each and each not in close][:4]
    if not close:
        return "`ghostgpu estimate --list` lists the built-in models"
    return "did you mean " + ", ".join(f"`{by_simple[each]}`" for each in close) + "?"
