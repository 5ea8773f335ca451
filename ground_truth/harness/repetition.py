"""Which cases may be replayed again before they count as different, and why.

[some-name]
precisions = ["fp16"]        # every case with one of these precisions
cases = ["vgg16"]            # and these
attempts = 2                 # how often each may be replayed again
reason = "one sentence"
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomllib


@dataclass(frozen=True)
class NotDeterministic:
    precisions: tuple[str, ...]
    cases: tuple[str, ...]
    attempts: int
    reason: str

    def covers(self, name: str, result: dict[str, Any]) -> bool:
        return name in self.cases or result["definition"]["precision"] in self.precisions


def read_not_deterministic(path: Path) -> list[NotDeterministic]:
    return [
        NotDeterministic(
            tuple(entry.get("precisions", ())),
            tuple(entry.get("cases", ())),
            int(entry["attempts"]),
            str(entry["reason"]),
        )
        for entry in tomllib.loads(path.read_text()).values()
    ]


def further_attempts(name: str, result: dict[str, Any], listed: list[NotDeterministic]) -> int:
    """How often a case may be replayed again; never, unless it is listed."""
    return max((entry.attempts for entry in listed if entry.covers(name, result)), default=0)
