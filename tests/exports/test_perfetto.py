"""The Perfetto export, read with Perfetto's own schema."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from recordings import CutOff, Export, read, recording
from replay import frames_of, replay
from timeline import Slice, Timeline

MIB = 1 << 20
DEVICE = "device 0"
BLOCKS = (DEVICE, "blocks of 1.00 MiB and more")


def shown_frames(entry: dict[str, object]) -> list[str]:
    return [f"{name} ({file}:{line})" for name, file, line in frames_of(entry)]


@pytest.mark.parametrize("counter", ["allocated", "active", "reserved"])
def test_counters_follow_a_plain_replay_event_by_event(
    any_recording: Path, export: Export, counter: str
) -> None:
    trace = read(any_recording)["device_traces"][0]
    sums: list[int] = getattr(replay(trace), counter)
    points = [(trace[0]["time_us"] * 1000, 0)]
    for entry, value in zip(trace, sums):
        if value != points[-1][1]:
            points.append((entry["time_us"] * 1000, value))
    timeline = Timeline(export(any_recording, "perfetto"))
    assert timeline[(DEVICE, counter)].counter == points


def test_counters_of_a_cut_off_trace_begin_with_what_was_there(
    any_recording: Path, export: Export, cut_off: CutOff
) -> None:
    trace = read(any_recording)["device_traces"][0]
    lost = len(trace) // 2
    whole = replay(trace)
    timeline = Timeline(export(cut_off(any_recording, lost), "perfetto"))
    for counter, sums in (
        ("allocated", whole.allocated),
        ("active", whole.active),
        ("reserved", whole.reserved),
    ):
        found = [value for _, value in timeline[(DEVICE, counter)].counter]
        expected = sums[lost - 1 :]
        changed = [b for a, b in zip(expected, expected[1:]) if a != b]
        assert found == [expected[0], *changed], counter


def test_a_counter_with_few_points_keeps_its_peak(export: Export) -> None:
    path = recording("unet+default")
    timeline = Timeline(export(path, "perfetto", "--max-counter-points", "100"))
    points = timeline[(DEVICE, "active")].counter
    assert len(points) <= 100
    assert max(value for _, value in points) == max(replay(read(path)["device_traces"][0]).active)


def test_every_large_block_is_a_slice_with_its_stack(any_recording: Path, export: Export) -> None:
    trace = read(any_recording)["device_traces"][0]
    expected = []
    ends: dict[int, Slice] = {}
    for at, entry in enumerate(trace):
        if entry["action"] == "alloc" and entry["size"] >= MIB:
            arguments = {
                "requested_bytes": entry["size"],
                "address": entry["addr"],
                "event": at,
                "stream": entry["stream"],
            }
            if frames_of(entry):
                arguments["stack"] = shown_frames(entry)
            ends[entry["addr"]] = Slice("", entry["time_us"] * 1000, arguments)
            expected.append(ends[entry["addr"]])
        elif entry["action"] == "free_completed" and entry["addr"] in ends:
            ends.pop(entry["addr"]).end_ns = entry["time_us"] * 1000

    found = Timeline(export(any_recording, "perfetto")).tracks.get(BLOCKS)
    slices = found.slices if found else []
    slices.sort(key=lambda each: each.arguments["event"])
    for each in slices:
        assert each.arguments.pop("block_bytes") >= each.arguments["requested_bytes"]
        # The range of record_function that it was made in.
        each.arguments.pop("name", None)
        each.arguments.pop("pool", None)
    assert [(s.begin_ns, s.end_ns, s.arguments) for s in slices] == [
        (s.begin_ns, s.end_ns, s.arguments) for s in expected
    ]


def test_a_slice_is_named_by_its_size_and_the_users_line(export: Export) -> None:
    timeline = Timeline(export(recording("unet+default"), "perfetto"))
    slices = timeline[BLOCKS].slices
    names = {each.name.split(" ", 2)[2] for each in slices if "stack" in each.arguments}
    assert "forward vision.py:106" in names
    assert all(each.name.split(" ")[1] in ("MiB", "GiB") for each in slices)


def test_a_block_that_waits_for_another_stream_shows_its_wait(export: Export) -> None:
    path = recording("two-streams+default")
    trace = read(path)["device_traces"][0]
    waits = []
    for entry, following in zip(trace, [*trace[1:], {"addr": None}]):
        if entry["action"] == "free_requested" and following["addr"] != entry["addr"]:
            waits.append(entry["addr"])
    timeline = Timeline(export(path, "perfetto", "--min-block-bytes", "0"))
    track = timeline[(DEVICE, "blocks of 0 bytes and more")]
    found = [each.arguments["address"] for each in track.slices if each.inside]
    assert sorted(found) == sorted(waits)
    assert waits


def test_segments_are_slices_from_their_allocation_to_their_free(export: Export) -> None:
    path = recording("caught-out-of-memory+default-3GiB")
    data = read(path)
    trace = data["device_traces"][0]
    timeline = Timeline(export(path, "perfetto"))
    slices = timeline[(DEVICE, "segments")].slices
    made = [entry for entry in trace if entry["action"] == "segment_alloc"]
    assert Counter((s.arguments["address"], s.begin_ns) for s in slices) == Counter(
        (entry["addr"], entry["time_us"] * 1000) for entry in made
    )
    kept = {each.arguments["address"] for each in slices if each.end_ns is None}
    assert kept == {segment["address"] for segment in data["segments"]}


def test_out_of_memory_errors_are_marked(export: Export) -> None:
    path = recording("caught-out-of-memory+expandable-3GiB")
    errors = [each for each in read(path)["device_traces"][0] if each["action"] == "oom"]
    instants = Timeline(export(path, "perfetto"))[(DEVICE, "events")].instants
    marked = [each for each in instants if each.name.startswith("out of memory")]
    assert [
        (m.begin_ns, m.arguments["requested_bytes"], m.arguments["driver_free_bytes"])
        for m in marked
    ] == [(e["time_us"] * 1000, e["size"], e["device_free"]) for e in errors]
    assert errors


def test_ranges_of_the_user_are_slices(export: Export) -> None:
    path = recording("unet+default")
    ranges = read(path)["external_annotations"]
    slices = Timeline(export(path, "perfetto"))[(DEVICE, "annotations")].slices
    begun = [(each["name"], each["time_us"] * 1000) for each in ranges if each["stage"] == "START"]
    ended = [(each["name"], each["time_us"] * 1000) for each in ranges if each["stage"] == "END"]
    assert Counter((each.name, each.begin_ns) for each in slices) == Counter(begun)
    assert Counter((each.name, each.end_ns) for each in slices) == Counter(ended)


def test_only_the_largest_blocks_are_drawn_when_there_are_too_many(export: Export) -> None:
    path = recording("bert+default")
    sizes = [e["size"] for e in read(path)["device_traces"][0] if e["action"] == "alloc"]
    timeline = Timeline(export(path, "perfetto", "--max-blocks", "50"))
    drawn = [each.arguments["requested_bytes"] for each in timeline[BLOCKS].slices]
    assert sorted(drawn) == sorted(sizes)[-50:]
