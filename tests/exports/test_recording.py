"""Reports on recordings, compared with a plain replay of the file by a second reader."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ghost_file import STAGE_TITLES, Card, Recording, count, read_ghost
from recordings import REPOSITORY, Export
from test_pprof import Sample, pprof, samples_of
from timeline import Timeline

MAKER = Path(os.environ.get("GHOSTGPU_MADE_UP") or REPOSITORY / "target/release/examples/made_up")
KINDS = [
    ("training", 6, 4),
    *(("random", seed, 400) for seed in (1, 20, 333, 4444, 55555, 6)),
]
CATEGORY_TITLES = {
    "parameter": "parameters",
    "buffer": "buffers",
    "gradient": "gradients",
    "optimizer_state": "optimizer state",
    "activation": "activations kept for backward",
    "input": "inputs",
    "workspace": "library workspaces",
    "kept": "kept by the script",
    "temporary": "temporaries",
    "gathered": "gathered parameters",
    "communication": "communication buffers",
}


@pytest.fixture(params=KINDS, ids=lambda kind: f"{kind[0]}-{kind[1]}")
def made_up(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Recordings of each kind in turn."""
    kind, first, second = request.param
    path = tmp_path / "made-up.ghost"
    subprocess.run([str(MAKER), str(path), kind, str(first), str(second)], check=True, timeout=60)
    return path


def cards_of(document: dict[str, Any], recording: Recording) -> list[tuple[dict[str, Any], Card]]:
    assert document["schema"] == "ghostgpu.report/1"
    assert [each["card"] for each in document["cards"]] == [c.index for c in recording.cards]
    return list(zip(document["cards"], recording.cards))


def test_parts_at_the_peak_are_those_of_a_plain_replay(made_up: Path, export: Export) -> None:
    recording = read_ghost(made_up)
    document = json.loads(export(made_up, "json").read_text())
    for found, card in cards_of(document, recording):
        counted = count(card)
        peak = counted.peak_event
        accounts = found["at_peak"]
        assert accounts["event"] == (peak if peak >= 0 else None)
        assert accounts["allocated_bytes"] == max(counted.allocated)
        assert accounts["reserved_bytes"] == counted.reserved[peak + 1]
        parts = accounts["parts"]
        requested = {name: sums[peak + 1] for name, sums in counted.categories.items()}
        # What none can be of, and what only ranks have, need not be there.
        assert {name: parts.get(name, 0) for name in requested} == requested
        assert parts["rounding"] == max(counted.allocated) - sum(requested.values())
        cached = counted.reserved[peak + 1] - max(counted.allocated)
        assert parts["cached"] + parts["cached_unusable"] == cached
        assert parts["context"] == card.outside
        assert sum(parts.values()) == accounts["on_card_bytes"]
        assert found["at_reserved_peak"]["reserved_bytes"] == max(counted.reserved)
        assert found["at_end"]["allocated_bytes"] == counted.allocated[-1]


def test_modules_lines_operators_and_holders_add_up_to_the_peak(
    made_up: Path, export: Export
) -> None:
    recording = read_ghost(made_up)
    document = json.loads(export(made_up, "json").read_text())
    for found, card in cards_of(document, recording):
        peak = count(card).peak_event
        live = [each for each in card.allocations if each.is_live(peak)]
        requested = sum(each.requested for each in live)
        assert sum(each["own_requested_bytes"] for each in found["modules"]) == requested
        for rows in (found["lines"], found["operators"], found["holders"]):
            shown = [each["requested_bytes"] for each in rows["rows"]]
            assert shown == sorted(shown, reverse=True)
            assert sum(shown) + rows["other_requested_bytes"] == requested
        by_line: Counter[str] = Counter()
        for each in live:
            ranked = sorted(
                each.stack, key=lambda frame: ["user", "package", "torch"].index(frame.owner)
            )
            if ranked:
                by_line[f"{ranked[0].file}:{ranked[0].line}"] += each.requested
        shown_lines: Counter[str] = Counter()
        for row in found["lines"]["rows"]:
            if row["frame"]:
                frame = row["frame"]
                shown_lines[f"{frame['file']}:{frame['line']}"] += row["requested_bytes"]
        assert shown_lines == by_line
        by_operator: Counter[str] = Counter()
        for each in live:
            by_operator[each.operator] += each.requested
        del by_operator[""]
        known = [each for each in found["operators"]["rows"] if each["is_known"]]
        assert {each["operator"]: each["requested_bytes"] for each in known} == by_operator


def test_stages_of_the_first_step_are_those_of_a_plain_replay(
    made_up: Path, export: Export
) -> None:
    recording = read_ghost(made_up)
    document = json.loads(export(made_up, "json").read_text())
    for found, card in cards_of(document, recording):
        training = {"forward", "backward", "optimizer_step", "zero_grad"}
        starts = [at for at, phase in enumerate(card.phases) if phase.stage in training]
        came: Counter[str] = Counter()
        for at, phase in enumerate(card.phases):
            if phase.step or phase.stage == "evaluation" or not starts or at < starts[0]:
                continue
            following = card.phases[at + 1 :]
            end = following[0].first_event if following else len(card.kinds)
            inside = range(phase.first_event, end)
            for each in card.allocations:
                if each.allocated_at is not None and each.allocated_at in inside:
                    came[phase.stage] += each.block
        rows = [row for row in found["stages"]["rows"] if row["part"] == "first_step"]
        assert +Counter({row["stage"]: row["came_bytes"] for row in rows}) == +came


def in_use_by(samples: list[Sample], label: str) -> Counter[str]:
    sums: Counter[str] = Counter()
    for sample in samples:
        sums[sample.labels.get(label, "")] += sample.inuse_space
    return +sums


def test_the_profile_has_the_blocks_of_the_peak(made_up: Path, export: Export) -> None:
    recording = read_ghost(made_up)
    samples = samples_of(export(made_up, "pprof"))
    expected: Counter[str] = Counter()
    by_module: Counter[str] = Counter()
    made = 0
    for card in recording.cards:
        peak = count(card).peak_event
        for each in card.allocations:
            made += each.block * (each.allocated_at is not None)
            if each.is_live(peak):
                expected[each.category] += each.block
                by_module[each.module] += each.block
    assert in_use_by(samples, "category") == expected
    assert in_use_by(samples, "module") == by_module
    assert sum(sample.alloc_space for sample in samples) == made
    assert all(sample.frames for sample in samples)
    shown = pprof(made_up.parent, "-top", "-tagroot=module", str(export(made_up, "pprof")))
    assert "Type: inuse_space" in shown


def changes(values: list[int]) -> list[int]:
    return [values[0], *(b for a, b in zip(values, values[1:]) if a != b)]


def test_counters_follow_a_plain_replay_event_by_event(made_up: Path, export: Export) -> None:
    recording = read_ghost(made_up)
    timeline = Timeline(export(made_up, "perfetto", "--min-block-bytes", "0"))
    for card in recording.cards:
        counted = count(card)
        track = f"device {card.index}"
        for name, sums in (("allocated", counted.allocated), ("reserved", counted.reserved)):
            assert [value for _, value in timeline[(track, name)].counter] == changes(sums)
        for name, sums in counted.categories.items():
            if any(each.category == name for each in card.allocations):
                values = [value for _, value in timeline[(track, CATEGORY_TITLES[name])].counter]
                assert values == changes(sums)


def test_stages_and_blocks_are_slices(made_up: Path, export: Export) -> None:
    recording = read_ghost(made_up)
    timeline = Timeline(export(made_up, "perfetto", "--min-block-bytes", "0"))
    for card in recording.cards:
        track = f"device {card.index}"
        if not card.kinds:
            continue
        steps = timeline[(track, "steps and stages")].slices
        found = [(step.name, stage.name) for step in steps for stage in step.inside]
        expected = []
        for at, phase in enumerate(card.phases):
            following = card.phases[at + 1 :]
            end = following[0].first_event if following else len(card.kinds)
            if phase.first_event < end:
                title = STAGE_TITLES.get(phase.stage, phase.stage)
                expected.append((f"step {phase.step + 1}", title))
        assert found == expected
        assert all(step.end_ns is not None for step in steps)
        blocks = timeline.tracks[(track, "blocks of 0 bytes and more")].slices
        lives = Counter(
            (each.address, each.requested, each.freed_at is None, len(each.stack))
            for each in card.allocations
        )
        assert lives == Counter(
            (
                block.arguments["address"],
                block.arguments["requested_bytes"],
                block.end_ns is None,
                len(block.arguments.get("stack", [])),
            )
            for block in blocks
        )
        failures = [
            each
            for each in timeline.tracks[(track, "events")].instants
            if each.name.startswith("out of memory")
        ]
        assert [each.arguments["requested_bytes"] for each in failures] == list(
            card.failed.values()
        )


def fields_of(value: Any) -> Iterator[str]:
    """Names of all fields, except where the names are data."""
    if isinstance(value, list):
        for each in value:
            yield from fields_of(each)
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield name
            if name not in ("answer", "parts", "categories", "came", "went", "stayed"):
                yield from fields_of(inner)


def test_every_field_is_described_and_every_description_has_a_field(
    tmp_path: Path, export: Export
) -> None:
    text = (REPOSITORY / "docs/report-json.md").read_text()
    cells = re.findall(r"^\| (`[^|]*`) \|", text, re.MULTILINE)
    in_tables = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    path = tmp_path / "training.ghost"
    subprocess.run([str(MAKER), str(path), "training", "3", "4"], check=True, timeout=60)
    document = json.loads(export(path, "json").read_text())
    written = set(fields_of(document))
    assert written - in_tables == set()
    parts = set(document["cards"][0]["at_peak"]["parts"])
    # A snapshot's only category; test_json.py has its document.
    assert in_tables - written - parts == {"unknown"}
    assert parts <= in_tables
