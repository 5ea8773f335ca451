"""Rehearses what others measured on their cards, and prints how far the virtual card is off.

    python ground_truth/harness/published.py --ghostgpu ghostgpu --python PYTHON [--only vgg]

The figures are in `ground_truth/published/trainings.csv`, each with its source. To be comparable
the python needs the torch of the row, and for language models the transformers of that time: others
allocate otherwise.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Iterable, Optional

HARNESS = Path(__file__).resolve().parent
TRAININGS = HARNESS.parent / "published" / "trainings.csv"

MIB = 1 << 20


@dataclass(frozen=True)
class Row:
    """One published figure of a training.

    `growth` is what the card held at the peak beyond what it held when the context was made,
    `reserved` what PyTorch had reserved at most.
    """

    name: str
    card: str
    torch: str
    model: str
    batch: int
    tokens: Optional[int]
    steps: int
    optimizer: str
    quantity: str
    bytes: int
    source: str


def read_rows(path: Path = TRAININGS) -> list[Row]:
    with path.open(newline="") as file:
        return [
            Row(
                name=row["name"],
                card=row["card"],
                torch=row["torch"],
                model=row["model"],
                batch=int(row["batch"]),
                tokens=None if row["tokens"] == "-" else int(row["tokens"]),
                steps=int(row["steps"]),
                optimizer=row["optimizer"],
                quantity=row["quantity"],
                bytes=int(row["bytes"]),
                source=row["source"],
            )
            for row in csv.DictReader(file)
        ]


@dataclass(frozen=True)
class Outcome:
    """What the virtual card said about a row."""

    row: Row
    reserved: int
    libraries: int

    @property
    def error(self) -> float:
        ours = self.reserved
        if self.row.quantity == "growth":
            ours += self.libraries
        return ours / self.row.bytes - 1


def outcome_of(row: Row, text: str) -> Optional[Outcome]:
    """The figures that `published_training.py` printed; none if it did not come so far."""
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word == "figures":
            figures = json.loads(rest)
            return Outcome(
                row=row,
                reserved=figures["reserved"],
                libraries=figures["outside"] - figures["context"],
            )
    return None


def rehearse(row: Row, ghostgpu: str, python: str) -> Optional[Outcome]:
    command = [ghostgpu, "run", "--gpu", row.card, "--python", python, "--full", "--quiet"]
    command += ["--no-retry", "--no-breakdown", "--", python]
    command += [str(HARNESS / "published_training.py"), "--model", row.model]
    command += ["--batch", str(row.batch), "--optimizer", row.optimizer]
    command += ["--steps", str(row.steps)]
    command += ["--tokens", str(row.tokens)] if row.tokens else []
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return outcome_of(row, ended.stdout)


def line(row: Row, outcome: Optional[Outcome]) -> str:
    beginning = f"{row.name:34} {row.bytes / MIB:9.0f}"
    if outcome is None:
        return f"{beginning}   did not end"
    return (
        f"{beginning} {outcome.reserved / MIB:9.0f} {outcome.libraries / MIB:9.0f}"
        f" {outcome.error:+8.2%}"
    )


HEADER = f"{'MiB':34} {'published':>9} {'reserved':>9} {'libraries':>9} {'error':>8}"


def summary(outcomes: Iterable[Outcome]) -> str:
    errors = sorted(abs(outcome.error) for outcome in outcomes)
    if not errors:
        return "nothing was rehearsed"
    within = sum(error <= 0.01 for error in errors)
    return (
        f"median error {statistics.median(errors):.2%}, largest {errors[-1]:.2%},"
        f" {within} of {len(errors)} within 1 %"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ghostgpu", default="ghostgpu")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    options = parser.parse_args()
    outcomes = []
    print(HEADER)
    for row in read_rows():
        if options.only not in row.name:
            continue
        outcome = rehearse(row, options.ghostgpu, options.python)
        print(line(row, outcome), flush=True)
        if outcome:
            outcomes.append(outcome)
    print(summary(outcomes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
