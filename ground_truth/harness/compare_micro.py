"""Compares the allocations of single operations on two cards.

python ground_truth/harness/compare_micro.py ground_truth/h200/micro_ops.json.gz virtual.json.gz
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from pathlib import Path
from typing import Any

ROUNDS = ("cold", "warm")


def differences(real: dict[str, Any], virtual: dict[str, Any]) -> list[str]:
    """Where the histories part, round by round; empty when they are the same."""
    found = []
    for name in ROUNDS:
        ours, theirs = virtual.get(name), real[name]
        if ours is None:
            found.append(f"{name}: {virtual.get('failed')}")
            continue
        if ours.get("failed") != theirs.get("failed"):
            found.append(f"{name}: {ours.get('failed')} instead of {theirs.get('failed')}")
        elif ours["events"] != theirs["events"]:
            found.append(f"{name}: {first_difference(theirs['events'], ours['events'])}")
    return found


def first_difference(real: list[list[Any]], virtual: list[list[Any]]) -> str:
    for index, (theirs, ours) in enumerate(zip(real, virtual)):
        if theirs != ours:
            return f"event {index}: {ours[0]} {ours[1]:,} instead of {theirs[0]} {theirs[1]:,}"
    return f"{len(virtual)} events instead of {len(real)}"


def read(path: Path) -> dict[str, Any]:
    with gzip.open(path, "rt") as file:
        return dict(json.load(file)["operations"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("real", type=Path)
    parser.add_argument("virtual", type=Path)
    options = parser.parse_args()
    real, virtual = read(options.real), read(options.virtual)
    measured = {name: entry for name, entry in real.items() if "cold" in entry and name in virtual}
    different = 0
    for name, entry in measured.items():
        found = differences(entry, virtual[name])
        if found:
            different += 1
            mark = " (depends on values)" if entry["is_data_dependent"] else ""
            print(f"{name}{mark}: {'; '.join(found)}")
    print(f"{len(measured) - different} of {len(measured)} operations allocate the same")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
