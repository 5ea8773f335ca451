"""Where the allocator's history of a script on a virtual card leaves that on a real one."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

#: Events around the first that differs.
SHOWN = 4

#: What is compared in turn: what the script asked for, gave back, and what came of it on the card.
ORDERS = {
    "asks for another size": "a",
    "gives memory back in another order": "ar",
    "another segment": "arSF",
    "memory is free at another moment": "arfSF",
}


def read_events(path: Path) -> dict[str, list[list[str]]]:
    """For each script, process and card, the events as `startup` writes them."""
    content: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return content


def _events(history: str, letters: str) -> list[str]:
    """Those of some kinds, without the addresses, which are never those of another machine."""
    return [event.partition("@")[0] for event in history.split() if event[0] in letters]


def first_difference(real: str, virtual: str) -> str:
    """The most telling difference of two histories, or nothing if they are alike."""
    for name, letters in ORDERS.items():
        one = _events(real, letters)
        other = _events(virtual, letters)
        if one == other:
            continue
        ends = min(len(one), len(other))
        place = next((at for at in range(ends) if one[at] != other[at]), ends)
        around = slice(max(0, place - SHOWN), place + SHOWN)
        return (
            f"{name} at event {place:,} of {len(one):,}:"
            f" {' '.join(one[around])} | {' '.join(other[around])}"
        )
    return ""


def differences(
    script: str, real: dict[str, list[list[str]]], virtual: dict[str, list[list[str]]]
) -> list[str]:
    """One line for each card of each process, where the history was kept on both."""
    pairs = zip(real.get(script, []), virtual.get(script, []))
    found = [first_difference(*cards) for processes in pairs for cards in zip(*processes)]
    return [line for line in found if line]
