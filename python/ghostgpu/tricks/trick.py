"""What all tricks have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from .hooks import Hooks


class Trick:
    """One trick; `registry` lists the classes below it.

    `options` holds every option of `catalogue.json` as text, defaults filled in and types checked
    (`catalogue.checked`).
    """

    name = ""
    """As in the registry and in the catalogue."""

    def __init__(self, torch: Any, hooks: Hooks, options: Mapping[str, str]) -> None:
        self.torch = torch
        self.hooks = hooks
        self.options = options

    def install(self) -> None:
        """Stand where the trick takes effect; nothing is changed yet."""
        raise NotImplementedError

    def did(self) -> str | None:
        """What was done, in words; None if there was no place for it."""
        raise NotImplementedError

    def nothing_because(self) -> str:
        """Why nothing was done, where nothing was."""
        return "the script has nothing of the kind"

    def line(self) -> str | None:
        """What to write in the script instead, on one line; None where advice has said it."""
        return None

    def other_results(self) -> str | None:
        """Why this script's results are others with `line`, where the trick promises the same."""
        return None

    def refused(self, reason: str, alternative: str) -> BaseException:
        """What to raise where the trick cannot be right; for the user to read."""
        return self.hooks.refusal(reason, alternative)


def counted(names: Counter[str], one: str, several: str) -> str:
    """`12 GPT2Block modules, 1 Encoder module`, the most frequent first."""
    ordered = sorted(names.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count} {name} {one if count == 1 else several}" for name, count in ordered)
