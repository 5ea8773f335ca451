"""What all tricks have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from .hooks import Hooks


class Trick:
    """One trick; `registry` lists the subclasses.

    `options` holds every option of `catalogue.json` as text, defaults filled in and types checked
    (`catalogue.checked`).
    """

    name = ""
    """Its name in the registry and the catalogue."""

    def __init__(self, torch: Any, hooks: Hooks, options: Mapping[str, str]) -> None:
        self.torch = torch
        self.hooks = hooks
        self.options = options

    def install(self) -> None:
        """Install the trick's hooks; nothing is changed yet."""
        raise NotImplementedError

    def did(self) -> str | None:
        """What was done, in words; None if the trick did not apply anywhere."""
        raise NotImplementedError

    def nothing_because(self) -> str:
        """Why nothing was done, if so."""
        return "the script has nothing of the kind"

    def line(self) -> str | None:
        """The line to write in the script instead; None if the advice already has it."""
        return None

    def other_results(self) -> str | None:
        """Why `line` changes this script's results although the trick promises the same ones."""
        return None

    def refused(self, reason: str, alternative: str) -> BaseException:
        """The exception to raise if the trick would be wrong; the user reads its text."""
        return self.hooks.refusal(reason, alternative)


def counted(names: Counter[str], one: str, several: str) -> str:
    """`12 GPT2Block modules, 1 Encoder module`, the most frequent first."""
    ordered = sorted(names.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count} {name} {one if count == 1 else several}" for name, count in ordered)
