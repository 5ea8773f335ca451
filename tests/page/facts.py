"""What a recording holds, counted in the plainest way, to compare with what the page shows."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

CATEGORIES = [
    "parameter",
    "buffer",
    "gradient",
    "optimizer_state",
    "activation",
    "input",
    "workspace",
    "kept",
    "temporary",
]

BETWEEN_RANKS = ["gathered", "communication"]
"""Categories that only a job of several ranks has."""


@dataclass(frozen=True)
class Allocation:
    address: int
    requested: int
    block: int
    begin: Optional[int]
    end: Optional[int]
    category: str
    title: str
    name: str
    module: str
    operator: str

    def is_live(self, event: int) -> bool:
        began = self.begin is None or self.begin <= event
        return began and (self.end is None or self.end > event)


class CardFacts:
    """One card of the recording."""

    def __init__(self, facts: dict[str, Any], card: dict[str, Any]) -> None:
        self.events: int = card["events"]
        self.outside: int = card["outside"]
        self.reserved_before: int = card["reserved_before"]
        self.pinned_at_peak: int = card["pinned_at_peak"]
        self.segments: list[tuple[int, int, int]] = card["segments"]
        self.allocations = [
            Allocation(
                **{
                    **each,
                    "name": facts["names"][each["name"]],
                    "module": facts["modules"][each["module"]],
                    "operator": facts["operators"][each["operator"]],
                }
            )
            for each in card["allocations"]
        ]

    def live(self, event: int) -> list[Allocation]:
        return [each for each in self.allocations if each.is_live(event)]

    def reserved(self, event: int) -> int:
        return self.reserved_before + sum(size for at, _, size in self.segments if at <= event)

    def allocated(self, event: int) -> int:
        return sum(each.block for each in self.live(event))

    def composition(self, event: int) -> dict[str, int]:
        """Bytes of everything that the page lists for a moment, by the page's keys."""
        live = self.live(event)
        used = {each.category for each in self.allocations}
        shown = dict.fromkeys([*CATEGORIES, *(key for key in BETWEEN_RANKS if key in used)], 0)
        for each in live:
            shown[each.category] += each.requested
        allocated = sum(each.block for each in live)
        reserved = self.reserved(event)
        shown["rounding"] = allocated - sum(each.requested for each in live)
        shown["cached"] = reserved - allocated
        shown["outside"] = self.outside
        shown["allocated"] = allocated
        shown["reserved"] = reserved
        shown["on the card"] = reserved + self.outside
        return shown

    def peak_event(self) -> int:
        """The first event with the most allocated bytes."""
        changes = [0] * self.events
        now = 0
        for each in self.allocations:
            if each.begin is None:
                now += each.block
            else:
                changes[each.begin] += each.block
            if each.end is not None:
                changes[each.end] -= each.block
        best = (-1, 0)
        for event, change in enumerate(changes):
            now += change
            best = max(best, (now, -event))
        return -best[1]


def read_facts(path: Path, run: str = "cards") -> list[CardFacts]:
    """The cards of the recording, or with `failed_cards` those of the run that failed."""
    facts = json.loads(path.read_text())
    return [CardFacts(facts, card) for card in facts[run]]
