#!/usr/bin/env python3
"""Compares a run of the linter over the corpus with the verdicts kept here.

    judge.py RUN --corpus FOLDER [--list]

RUN is what `ghostgpu lint --json` or the crate's `check_files` example printed about the
files in FOLDER, which may hold a part of the list. Shown are findings nobody has judged yet,
verdicts about files of FOLDER whose finding is gone, and the precision (right ones among the judged
findings of this run) by rule and by set. The exit status is 1 while a finding is without verdict or
a set is below nine of ten.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Iterator, NamedTuple

HERE = Path(__file__).parent
SETS = (
    "tuning",
    "held-out",
    "blind",
    "blind2",
    "blind3",
    "blind4",
    "blind5",
    "blind6",
    "blind7",
    "blind8",
)
WANTED = 0.9

# path:line:column: rule: message, or path:cell:line:column: rule: message
PLAIN = re.compile(
    r"(?P<path>.+?):(?:(?P<cell>\d+):)?(?P<line>\d+):\d+: "
    r"(?P<rule>[a-z][a-z0-9-]*): (?P<message>.*)"
)


class Place(NamedTuple):
    """What a verdict is about. Corpus files are fixed by their commit, so lines do not shift."""

    repository: str
    path: str
    line: str
    rule: str


def rows(name: str) -> list[dict[str, str]]:
    file = HERE / name
    if not file.exists():
        return []
    with file.open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def read_sources() -> dict[tuple[str, str], str]:
    return {(row["repository"], row["path"]): row["set"] for row in rows("sources.tsv")}


def read_verdicts() -> dict[Place, str]:
    verdicts: dict[Place, str] = {}
    for row in rows("verdicts.tsv"):
        place = Place(row["repository"], row["path"], row["line"], row["rule"])
        if row["verdict"] not in ("right", "wrong"):
            sys.exit(f"verdicts.tsv: {place}: neither right nor wrong: {row['verdict']}")
        if place in verdicts:
            sys.exit(f"verdicts.tsv: {place}: judged twice")
        verdicts[place] = row["verdict"]
    return verdicts


def findings_in(text: str) -> Iterator[tuple[str, str, str, str]]:
    """Path, line (`cell:line` in a notebook), rule and message of every finding in the output."""
    if text.lstrip().startswith("{"):
        for finding in json.loads(text)["findings"]:
            start = finding["start"]
            if start is not None:
                cell = f"{start['cell']}:" if start["cell"] else ""
                line = f"{cell}{start['line']}"
                yield finding["file"], line, finding["rule"], finding["message"]
        return
    for line in text.splitlines():
        match = PLAIN.fullmatch(line)
        if match:
            cell = f"{match['cell']}:" if match["cell"] else ""
            yield match["path"], cell + match["line"], match["rule"], match["message"]


def in_corpus(file: str, corpus: str) -> tuple[str, str]:
    """The repository and the path inside it of `FOLDER/OWNER+NAME/PATH`."""
    folder, _, path = os.path.relpath(file, corpus).replace(os.sep, "/").partition("/")
    return folder.replace("+", "/", 1), path


def on_disk(place: Place, corpus: str) -> bool:
    return Path(corpus, place.repository.replace("/", "+", 1), place.path).exists()


def percent(right: int, judged: int) -> str:
    return f"{right:4} of {judged:4} right ({100 * right / judged:5.1f} %)" if judged else "none"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=argparse.FileType("r", encoding="utf-8"))
    parser.add_argument("--corpus", required=True, help="the folder that was linted")
    parser.add_argument("--list", action="store_true", help="name every wrong and gone finding")
    options = parser.parse_args()

    sources, verdicts = read_sources(), read_verdicts()
    found: dict[Place, str] = {}
    for file, line, rule, message in findings_in(options.run.read()):
        repository, path = in_corpus(file, options.corpus)
        if (repository, path) in sources:
            found.setdefault(Place(repository, path, line, rule), message)

    new = [place for place in found if place not in verdicts]
    gone = [place for place in verdicts if place not in found and on_disk(place, options.corpus)]
    for place in new:
        print(f"without verdict: {'  '.join(place)}  {found[place]}")
    if options.list:
        for place in found:
            if verdicts.get(place) == "wrong":
                print(f"wrong: {'  '.join(place)}  {found[place]}")
        for place in gone:
            print(f"gone ({verdicts[place]}): {'  '.join(place)}")

    judged: Counter[tuple[str, str]] = Counter()
    right: Counter[tuple[str, str]] = Counter()
    for place in found:
        if place in verdicts:
            for group in (("rule", place.rule), ("set", sources[place.repository, place.path])):
                judged[group] += 1
                right[group] += verdicts[place] == "right"

    for rule in sorted({place.rule for place in found}):
        print(f"{rule:36} {percent(right['rule', rule], judged['rule', rule])}")
    enough = True
    for name in SETS:
        group = ("set", name)
        print(f"{name:36} {percent(right[group], judged[group])}")
        enough &= right[group] >= WANTED * judged[group]
    in_all = sum(judged["set", name] for name in SETS)
    print(f"{'in all':36} {percent(sum(right['set', name] for name in SETS), in_all)}")
    lost = sum(verdicts[place] == "right" for place in gone)
    print(f"{len(new)} without verdict; {len(gone)} gone, of which {lost} were right")
    return 0 if enough and not new else 1


if __name__ == "__main__":
    sys.exit(main())
