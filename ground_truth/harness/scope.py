"""How much of the ground truth is replayed: all of it, or, in `make test`, what stands for it."""

from __future__ import annotations

import os
from typing import Any

from sentinels import cost


def is_short() -> bool:
    return os.environ.get("GHOSTGPU_TEST_SCOPE", "all") == "short"


def one_per_family(names: list[str], measured: dict[str, dict[str, Any]]) -> list[str]:
    """The cheapest case of each family."""
    cheapest: dict[str, str] = {}
    for name in sorted(names, key=lambda name: (cost(measured[name]), name)):
        cheapest.setdefault(measured[name]["family"], name)
    return [name for name in names if name in cheapest.values()]
