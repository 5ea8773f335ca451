"""The JSON export, compared with a plain replay, and with its description in `docs`."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recordings import REPOSITORY, Export, read, recording
from replay import Frames, bytes_by_frames, replay


def device_of(path: Path) -> dict[str, Any]:
    document = json.loads(path.read_text())
    assert document["schema"] == "ghostgpu.snapshot/1"
    (device,) = document["devices"]
    assert device["device"] == 0
    found: dict[str, Any] = device
    return found


def test_peaks_are_those_of_a_plain_replay(any_recording: Path, export: Export) -> None:
    trace = read(any_recording)["device_traces"][0]
    expected = replay(trace)
    device = device_of(export(any_recording, "json"))
    peak = device["peak_active"]
    assert peak["event"] == expected.peak_event
    assert peak["time_us"] == trace[expected.peak_event]["time_us"]
    assert peak["active_requested_bytes"] == max(expected.active)
    assert peak["reserved_bytes"] == expected.reserved[expected.peak_event]
    assert device["peak_reserved"]["reserved_bytes"] == max(expected.reserved)
    assert device["peak_reserved"]["event"] == expected.reserved.index(max(expected.reserved))


def test_holders_are_those_of_a_plain_replay(any_recording: Path, export: Export) -> None:
    expected = replay(read(any_recording)["device_traces"][0])
    device = device_of(export(any_recording, "json"))
    for field, live in (("holders_at_peak", expected.at_peak), ("holders_at_end", expected.at_end)):
        part = device[field]
        assert part["requested_bytes"] == sum(each.bytes for each in live.values())
        assert part["blocks"] == len(live)
        sizes = [holder["requested_bytes"] for holder in part["holders"]]
        assert sizes == sorted(sizes, reverse=True)
        assert sum(sizes) + part["other_requested_bytes"] == part["requested_bytes"]
        found: Counter[Frames] = Counter()
        for holder in part["holders"]:
            stack = [(f["function"], f["file"], f["line"]) for f in holder["stack"]]
            assert holder["origin"] == ("stack" if stack else "no_stack")
            found[tuple(stack)] += holder["requested_bytes"]
        if not part["other_blocks"]:
            assert found == bytes_by_frames(live)


def test_the_state_is_that_of_the_segments(any_recording: Path, export: Export) -> None:
    segments = read(any_recording)["segments"]
    blocks = [block for segment in segments for block in segment["blocks"]]
    device = device_of(export(any_recording, "json"))
    state = device["state"]
    for ours, theirs in (
        ("reserved_bytes", "total_size"),
        ("allocated_bytes", "allocated_size"),
        ("active_bytes", "active_size"),
    ):
        assert state[ours] == sum(segment[theirs] for segment in segments)
        assert state[ours] == sum(pool[ours] for pool in device["pools"])
    assert state["requested_bytes"] == sum(each["requested_size"] for each in segments)
    inactive = [block["size"] for block in blocks if block["state"] == "inactive"]
    assert state["inactive_bytes"] == sum(inactive)
    assert state["inactive_blocks"] == len(inactive)
    assert state["largest_inactive_block_bytes"] == max(inactive, default=0)
    assert [each["address"] for each in device["segments"]] == [s["address"] for s in segments]


def test_out_of_memory_errors_are_listed(export: Export) -> None:
    path = recording("caught-out-of-memory+default-3GiB")
    trace = read(path)["device_traces"][0]
    errors = device_of(export(path, "json"))["trace"]["out_of_memory"]
    assert [(e["event"], e["bytes"], e["device_free_bytes"]) for e in errors] == [
        (at, e["size"], e["device_free"]) for at, e in enumerate(trace) if e["action"] == "oom"
    ]


def fields_of(value: Any) -> Iterator[str]:
    """Names of all fields, except where the names are data."""
    if isinstance(value, list):
        for each in value:
            yield from fields_of(each)
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield name
            if name not in ("events_by_action", "roundup_power2_divisions"):
                yield from fields_of(inner)


def test_every_field_is_described_and_every_description_has_a_field(export: Export) -> None:
    text = (REPOSITORY / "docs/snapshot-json.md").read_text()
    cells = re.findall(r"^\| (`[^|]*`) \|", text, re.MULTILINE)
    in_tables = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    in_text = set(re.findall(r"`(\w+)`", text))
    written: set[str] = set()
    for name in ("unet+default", "caught-out-of-memory+default-3GiB"):
        written |= set(fields_of(json.loads(export(recording(name), "json").read_text())))
    assert written - in_text == set()
    assert in_tables - written == set()
