"""Installs tricks into this process, and keeps them for their reports at the end."""

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
    """What one trick did."""

    name: str
    did: str | None
    """What was done, in words; None if the trick did not apply anywhere."""
    nothing_because: str
    """Why nothing was done, if so."""
    line: str | None
    """The line that has the same effect when written in the script."""
    other_results: str | None
    """Why that line changes this script's results, although it usually does not."""


class Started:
    """The tricks that are active in this process."""

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
