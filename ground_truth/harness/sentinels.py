"""Which measured cases stand for the others when time is short (`make test`).

Every fact that sets a case apart has a sentinel: each family with each precision, each way to end,
each memory format and each way to limit memory; each option of the allocator; each optimizer; each
reason for which a case is known not to be equal. The sentinel of a fact is the cheapest case that
has it, so a new family, option or reason gets one by itself.
"""

from __future__ import annotations

import re
from typing import Any

from deviations import Deviation

Result = dict[str, Any]


def sentinels(measured: dict[str, Result], known: dict[str, Deviation]) -> list[str]:
    """The names of the cases that together have every fact, in the order of `measured`."""
    cheapest: dict[tuple[str, ...], str] = {}
    for name in sorted(measured, key=lambda name: (cost(measured[name]), name)):
        for fact in facts(measured[name], known.get(name)):
            cheapest.setdefault(fact, name)
    chosen = set(cheapest.values())
    return [name for name in measured if name in chosen]


def facts(result: Result, deviation: Deviation | None) -> list[tuple[str, ...]]:
    """What sets this case apart."""
    definition, family = result["definition"], result["family"]
    found = [
        ("precision", family, definition["precision"]),
        ("ending", family, result["outcome"]),
        ("optimizer", definition["optimizer"]),
    ]
    found += [("allocator option", option) for option in options(definition["settings"])]
    if definition["channels_last"]:
        found.append(("channels last", family))
    if definition["cap_gib"] is not None:
        found.append(("memory cap", family, result["outcome"]))
    if definition["accumulate"] > 1:
        found.append(("accumulation",))
    if deviation is not None:
        found.append(("deviation", deviation.reason))
    return found


def options(settings: str) -> list[str]:
    """The names in a PYTORCH_CUDA_ALLOC_CONF: `a:1,b:[2:3,4:5]` has `a` and `b`."""
    without_lists = re.sub(r"\[[^]]*\]", "", settings)
    return [part.partition(":")[0].strip() for part in without_lists.split(",") if part.strip()]


def cost(result: Result) -> int:
    """Roughly what a replay takes: allocations, or a usual number where none were counted."""
    counted = [step["allocations"] or 0 for step in result["steps"]]
    return max(counted, default=0) or 5000
