"""The list of cases that are known not to be equal, with the size and the reason of each.

[some-case]
allocated_bytes = 0          # largest error allowed, in bytes, either way
reserved_bytes = 2097152
reason = "one sentence"
other_ending = true          # it may even end another way (optional)
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tomllib


@dataclass(frozen=True)
class Deviation:
    case: str
    allocated_bytes: int
    reserved_bytes: int
    reason: str
    allows_other_ending: bool = False

    def limits(self) -> dict[str, int]:
        return {
            "peak_allocated_bytes": self.allocated_bytes,
            "peak_reserved_bytes": self.reserved_bytes,
        }


def read_deviations(path: Path) -> dict[str, Deviation]:
    if not path.exists():
        return {}
    content = tomllib.loads(path.read_text())
    return {
        name: Deviation(
            name,
            int(entry["allocated_bytes"]),
            int(entry["reserved_bytes"]),
            str(entry["reason"]),
            bool(entry.get("other_ending", False)),
        )
        for name, entry in content.items()
    }
