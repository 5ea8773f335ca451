"""Installs tricks into this process, and keeps them to be asked at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import catalogue, registry
from .hooks import Hooks
from .refusal import Refusal, Refused
from .trick import Trick


@dataclass(frozen=True)
class Account:
    """What became of one trick."""

    name: str
    did: str | None
    """What was done, in words; None if there was no place for it."""
    nothing_because: str
    """Why nothing was done, where nothing was."""
    line: str | None
    """What to write in the script to the same effect."""
    other_results: str | None
    """Why this script's results are others with that line, though they usually are the same."""


class Started:
    """Tricks that are at work in this process."""

    def __init__(self, tricks: Sequence[Trick], hooks: Hooks) -> None:
        self.tricks = tuple(tricks)
        self.hooks = hooks

    def accounts(self) -> list[Account]:
        """What each trick has done so far, in the order in which they were installed."""
        return [
            Account(
                trick.name,
                trick.did(),
                trick.nothing_because(),
                trick.line(),
                trick.other_results(),
            )
            for trick in self.tricks
        ]


def start(
    torch: Any,
    requests: Sequence[tuple[str, Mapping[str, str]]],
    refusal: Refusal | None = None,
    is_rehearsed: bool = False,
) -> Started:
    """See `tricks.start`."""
    hooks = Hooks(torch)
    hooks.is_rehearsed = is_rehearsed
    if refusal is not None:
        hooks.refusal = refusal
    try:
        checked = catalogue.checked(requests)
    except Refused as refused:
        raise hooks.refusal(refused.reason, refused.alternative) from None
    tricks = [registry.load(name)(torch, hooks, options) for name, options in checked]
    for trick in tricks:
        trick.install()
    hooks.install()
    return Started(tricks, hooks)
