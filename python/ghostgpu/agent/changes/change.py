"""What all changes have in common."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .hooks import Hooks


class Change:
    """One change; the classes below it are listed in `changes`."""

    def __init__(self, torch: Any, hooks: Hooks) -> None:
        self.torch = torch
        self.hooks = hooks

    def install(self) -> None:
        """Stand where the change is made; nothing is changed yet."""
        raise NotImplementedError

    def did(self) -> str | None:
        """What was done, in words; None if there was no place for it."""
        raise NotImplementedError

    def line(self) -> str | None:
        """What to write in the script, on one line; None where the advice has said it."""
        return None

    def other_results(self) -> str | None:
        """Why this script's results are others with it, where the advice promises the same."""
        return None


def counted(names: Counter[str], one: str, several: str) -> str:
    """`12 GPT2Block modules, 1 Encoder module`, the most frequent first."""
    ordered = sorted(names.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count} {name} {one if count == 1 else several}" for name, count in ordered)
