"""The JSON of snapshots, compared with a plain replay, and with the description in `docs`."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from recordings import REPOSITORY, Export, read, recording
from replay import Frames, bytes_by_frames, replay
from test_recording import fields_of


def card_of(path: Path) -> dict[str, Any]:
    document = json.loads(path.read_text())
    assert document["schema"] == "ghostgpu.report/1"
    assert document["about"]["source"] == "snapshot"
    assert document["answer"] is None
    (card,) = document["cards"]
    assert card["card"] == 0
    found: dict[str, Any] = card
    return found


def test_peaks_are_those_of_a_plain_replay(any_recording: Path, export: Export) -> None:
    trace = read(any_recording)["device_traces"][0]
    expected = replay(trace)
    card = card_of(export(any_recording, "json"))
    peak = card["at_peak"]
    assert peak["event"] == expected.peak_event
    assert card["began_us"] + peak["time_us"] == trace[expected.peak_event]["time_us"]
    assert peak["requested_bytes"] == max(expected.active)
    assert peak["reserved_bytes"] == expected.reserved[expected.peak_event]
    assert peak["on_card_bytes"] is None
    assert sum(peak["parts"].values()) == peak["reserved_bytes"]
    assert card["at_reserved_peak"]["reserved_bytes"] == max(expected.reserved)
    assert card["at_reserved_peak"]["event"] == expected.reserved.index(max(expected.reserved))


def test_holders_are_those_of_a_plain_replay(any_recording: Path, export: Export) -> None:
    expected = replay(read(any_recording)["device_traces"][0])
    card = card_of(export(any_recording, "json"))
    live = expected.at_peak
    part = card["holders"]
    sizes = [holder["requested_bytes"] for holder in part["rows"]]
    assert sizes == sorted(sizes, reverse=True)
    assert sum(sizes) + part["other_requested_bytes"] == sum(each.bytes for each in live.values())
    found: Counter[Frames] = Counter()
    for holder in part["rows"]:
        stack = [(f["function"], f["file"], f["line"]) for f in holder["stack"]]
        found[tuple(stack)] += holder["requested_bytes"]
    if not part["other_rows"]:
        assert found == bytes_by_frames(live)


def test_the_end_is_that_of_the_segments(any_recording: Path, export: Export) -> None:
    segments = read(any_recording)["segments"]
    card = card_of(export(any_recording, "json"))
    found = card["segments_at_end"]
    for ours, theirs in (
        ("address", "address"),
        ("bytes", "total_size"),
        ("live_bytes", "active_size"),
        ("requested_bytes", "requested_size"),
        ("stream", "stream"),
    ):
        assert [each[ours] for each in found] == [each[theirs] for each in segments], ours
    for each, segment in zip(found, segments):
        free = [block["size"] for block in segment["blocks"] if block["state"] == "inactive"]
        assert each["largest_free_block_bytes"] == max(free, default=0)
        assert each["is_small"] == (segment["segment_type"] == "small")
        assert tuple(each["pool"]) == tuple(segment["segment_pool_id"])
    assert card["at_end"]["reserved_bytes"] == sum(each["bytes"] for each in found)


def test_out_of_memory_errors_are_listed(export: Export) -> None:
    path = recording("caught-out-of-memory+default-3GiB")
    trace = read(path)["device_traces"][0]
    errors = card_of(export(path, "json"))["out_of_memory"]
    assert [(e["event"], e["requested_bytes"], e["driver_free_bytes"]) for e in errors] == [
        (at, e["size"], e["device_free"]) for at, e in enumerate(trace) if e["action"] == "oom"
    ]


def test_what_a_snapshot_cannot_know_is_null_or_empty(any_recording: Path, export: Export) -> None:
    card = card_of(export(any_recording, "json"))
    for field in ("stages", "operators", "rule_of_thumb", "growth"):
        assert card[field] is None, field
    assert card["steps"] == card["modules"] == []
    assert set(card["at_peak"]["parts"]) == {"unknown", "rounding", "cached", "cached_unusable"}


def test_every_field_is_described(export: Export) -> None:
    text = (REPOSITORY / "docs/report-json.md").read_text()
    described = set(re.findall(r"`(\w+)`", text))
    for name in ("unet+default", "caught-out-of-memory+default-3GiB"):
        document = json.loads(export(recording(name), "json").read_text())
        assert set(fields_of(document)) - described == set()
