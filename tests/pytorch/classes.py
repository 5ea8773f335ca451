"""What becomes of PyTorch's tests on virtual cards: the list, and how a run compares with it."""

from __future__ import annotations

import csv
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from suites import Ended, read_results, suites

LIST = Path(__file__).resolve().parent / "classified.csv"

#: Of the tests that are neither about values nor about the machine, so many pass.
LEAST_SHARE = 0.95


@dataclass(frozen=True)
class Classified:
    """One row of the list."""

    suite: str
    test: str
    kind: str
    reason: str = ""


def read_list() -> dict[tuple[str, str], Classified]:
    if not LIST.exists():
        return {}
    with LIST.open(newline="", encoding="utf-8") as file:
        rows = [Classified(*row) for row in csv.reader(file)][1:]
    return {(row.suite, row.test): row for row in rows}


def write_list(rows: list[Classified]) -> None:
    with LIST.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("suite", "test", "class", "reason"))
        for row in sorted(rows, key=lambda row: (row.suite, row.test)):
            writer.writerow((row.suite, row.test, row.kind, row.reason))


#: What a comparison of computed values says when it fails.
ABOUT_VALUES = re.compile(
    r"Tensor-likes are not (close|equal)"
    r"|Scalars are not close"
    r"|tensor\((False|True)"
    r"|did not match control"
    r"|result did not match"
    # Values that are expected to differ do not: `assertRaises` around `assertEqual`.
    r"|AssertionError not raised"
    r"|is all zeros"
)
#: What is said where the machine lacks something.
ABOUT_THE_MACHINE = re.compile(r"Name or service not known|nvcc|Ninja is required|CUDA_HOME")
ABOUT_REFUSALS = re.compile(r"operation not supported|NotSupported|not simulated")


def guess(ended: Ended) -> str:
    """The class of a test that nobody has looked at."""
    if ended.outcome != "failed":
        return ended.outcome
    for kind, pattern in (
        ("machine", ABOUT_THE_MACHINE),
        ("values", ABOUT_VALUES),
        ("refused", ABOUT_REFUSALS),
    ):
        if pattern.search(ended.why):
            return kind
    return "ours"


def still_fits(row: Classified, ended: Ended) -> bool:
    """Whether a test ended as its class says."""
    if ended.outcome in ("crashed", "hung"):
        return False
    if row.kind in ("values", "machine"):
        return True
    expected = {"passed": "passed", "skipped": "skipped", "ours": "failed", "refused": "failed"}
    return expected.get(row.kind) == ended.outcome


def share(rows: list[Classified]) -> float:
    """How many of the tests pass that a virtual card can be held to."""
    held = [row for row in rows if row.kind in ("passed", "ours", "refused")]
    return sum(row.kind == "passed" for row in held) / max(len(held), 1)


def main() -> int:
    """Writes the list anew from the results of suites in a folder."""
    (folder,) = sys.argv[1:]
    known = read_list()
    rows = {
        key: row for key, row in known.items() if not (Path(folder) / f"{key[0]}.jsonl").exists()
    }
    for name in suites():
        for test, ended in read_results(Path(folder) / f"{name}.jsonl")[0].items():
            row = known.get((name, test))
            if row is None or not still_fits(row, ended):
                row = Classified(name, test, guess(ended), "")
            rows[name, test] = row
    write_list(list(rows.values()))
    print(f"{share(list(rows.values())):.1%} of the tests that a virtual card is held to pass")
    return 0


if __name__ == "__main__":
    sys.exit(main())
