"""The folded export, read by `gprof2dot`, which knows flame graphs' collapsed stacks."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple, Optional

import gprof2dot
from recordings import Export, read
from replay import replay


class Function(NamedTuple):
    """What gprof2dot makes of a frame."""

    file: Optional[str]
    name: str


def test_bytes_of_each_function_are_those_of_a_plain_replay(
    stacks_recording: Path, export: Export
) -> None:
    expected = replay(read(stacks_recording)["device_traces"][0])
    own, whole = Counter[Function](), Counter[Function]()
    for allocation in expected.at_peak.values():
        functions = [Function(file, name) for name, file, _ in allocation.frames]
        functions = functions or [Function(None, "(no stack recorded)")]
        own[functions[0]] += allocation.bytes
        whole.update(dict.fromkeys(functions, allocation.bytes))

    with export(stacks_recording, "folded").open() as lines:
        profile = gprof2dot.CollapseParser(lines).parse()
    assert profile[gprof2dot.SAMPLES] == sum(own.values())
    found = {Function(each.module, each.name): each for each in profile.functions.values()}
    assert {key: each[gprof2dot.TOTAL_SAMPLES] for key, each in found.items()} == whole
    assert +Counter({key: each[gprof2dot.SAMPLES] for key, each in found.items()}) == own


def test_lines_are_sorted_and_the_same_every_time(any_recording: Path, export: Export) -> None:
    first = export(any_recording, "folded").read_text()
    again = export(any_recording, "folded", "--device", "0").read_text()
    assert first == again
    lines = [line.rsplit(" ", 1)[0] for line in first.splitlines()]
    assert lines == sorted(set(lines))
