"""Why scripts come to other bytes on the virtual card than on the real one: `deviations.toml`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Optional

import tomllib

if TYPE_CHECKING:
    from .compare import Comparison

DEVIATIONS = Path(__file__).resolve().parent / "deviations.toml"


@dataclass(frozen=True)
class Deviation:
    script: str
    #: A name in the list of reasons.
    because: str
    #: The sentence of that reason.
    reason: str
    #: The largest relative error of a peak that this reason accounts for; None where the script
    #: does not end on the virtual card.
    at_most: Optional[float]


def read_deviations(path: Path = DEVIATIONS) -> dict[str, Deviation]:
    content = tomllib.loads(path.read_text())
    reasons: dict[str, str] = content["reasons"]
    return {
        name: Deviation(name, entry["because"], reasons[entry["because"]], entry.get("at_most"))
        for name, entry in content["scripts"].items()
    }


def disagreements(comparisons: list[Comparison], known: dict[str, Deviation]) -> list[str]:
    """What the list says otherwise than the comparison, a sentence each."""
    found = []
    for one in comparisons:
        deviation = known.get(one.script)
        if one.verdict == "differs" and deviation is None:
            found.append(f"{one.script} differs, and nothing says why: {one.reason}")
        elif deviation is None:
            continue
        elif deviation.at_most is None:
            if one.verdict != "failed":
                found.append(f"{one.script} ends, and is listed as one that does not")
        elif one.verdict == "differs" and one.relative_error > deviation.at_most:
            found.append(
                f"{one.script} is off by {one.relative_error:.2%}, and {deviation.because}"
                f" accounts for {deviation.at_most:.2%}: {one.reason}"
            )
        elif one.verdict == "equal" and not one.is_unsteady:
            found.append(f"{one.script} is equal, and is listed as different")
    return found
