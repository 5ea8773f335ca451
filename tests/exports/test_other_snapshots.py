"""Snapshots of three torch versions and both writers, with two cards, full rings and no history."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from recordings import REPOSITORY, Export, read
from replay import replay
from test_pprof import samples_of
from timeline import Timeline
from torch.cuda import _memory_viz

SNAPSHOTS = sorted((REPOSITORY / "crates/snapshot/tests/data").glob("*.pickle.gz"))
TWO_CARDS = [path for path in SNAPSHOTS if path.name.startswith("two-cards")]


@pytest.fixture(params=SNAPSHOTS, ids=lambda path: path.name.split(".pickle")[0])
def snapshot(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


@pytest.fixture(params=TWO_CARDS, ids=lambda path: path.name.split(".pickle")[0])
def two_cards(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


def active_bytes_by_device(path: Path) -> Counter[str]:
    """Requested bytes of active blocks at the end."""
    sums = Counter[str]()
    for segment in read(path)["segments"]:
        for block in segment["blocks"]:
            if block["state"] != "inactive":
                sums[str(segment["device"])] += block["requested_size"]
    return sums


def test_there_are_snapshots_to_look_at() -> None:
    assert len(SNAPSHOTS) > 10
    assert TWO_CARDS


def test_a_profile_of_the_end_has_what_the_segments_have(snapshot: Path, export: Export) -> None:
    found = Counter[str]()
    for sample in samples_of(export(snapshot, "pprof", "--at", "end")):
        found[sample.labels["device"]] += sample.inuse_space
    assert +found == active_bytes_by_device(snapshot)


def test_a_timeline_ends_with_what_the_segments_have(snapshot: Path, export: Export) -> None:
    timeline = Timeline(export(snapshot, "perfetto"))
    found = Counter[str]()
    for (device, *counter), track in timeline.tracks.items():
        if counter == ["active"]:
            found[device.split()[1]] += track.counter[-1][1]
    assert +found == active_bytes_by_device(snapshot)


def test_pytorchs_viewer_says_the_same_of_our_pickle(snapshot: Path, export: Export) -> None:
    exported, original = read(export(snapshot, "memory_viz")), read(snapshot)
    for report in (_memory_viz.segsum, _memory_viz.trace):
        describe: Any = report
        assert describe(exported) == describe(original)


def test_two_cards_are_told_apart(two_cards: Path, export: Export) -> None:
    found = Counter[str]()
    for line in export(two_cards, "folded").read_text().splitlines():
        stack, bytes_held = line.rsplit(" ", 1)
        found[stack.split(";")[0]] += int(bytes_held)
    traces = read(two_cards)["device_traces"]
    peaks = {f"device {at}": max(replay(trace).active) for at, trace in enumerate(traces)}
    assert found == peaks
    assert len(peaks) == 2
    timeline = Timeline(export(two_cards, "perfetto", "--device", "1"))
    assert {path[0] for path in timeline.tracks} == {"device 1"}
