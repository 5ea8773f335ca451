"""The memory_viz export, opened by PyTorch's own `_memory_viz.py` in the reference environment."""

from __future__ import annotations

import base64
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from recordings import Export, Snapshot, read, recording
from torch.cuda import _memory_viz


def without_drawing(lines: str) -> str:
    """In place of flamegraph.pl, which PyTorch downloads."""
    return lines


@pytest.mark.parametrize("report", ["segsum", "trace", "memory", "segments"])
def test_texts_are_those_of_the_original(any_recording: Path, export: Export, report: str) -> None:
    draw = {"format_flamegraph": without_drawing} if report in ("memory", "segments") else {}
    write = getattr(_memory_viz, report)
    assert write(read(export(any_recording, "memory_viz")), **draw) == write(
        read(any_recording), **draw
    )


@pytest.mark.parametrize("plot", ["trace_plot", "segment_plot"])
def test_pages_hold_the_original(any_recording: Path, export: Export, plot: str) -> None:
    page = getattr(_memory_viz, plot)(read(export(any_recording, "memory_viz")))
    original = getattr(_memory_viz, plot)(read(any_recording))
    assert comparable(embedded(page)) == comparable(embedded(original))


def embedded(page: str) -> Snapshot:
    """The data that a page of PyTorch's draws."""
    found = re.search(r'"base64": "([^"]*)"', page)
    assert found, page[:2000]
    loaded: Snapshot = pickle.loads(base64.b64decode(found[1]))
    return loaded


def test_the_command_opens_it(export: Export, tmp_path: Path) -> None:
    exported = export(recording("unet+default"), "memory_viz")
    page = tmp_path / "page.html"
    words = [sys.executable, "-m", "torch.cuda._memory_viz", "trace_plot", str(exported), "-o"]
    subprocess.run([*words, str(page)], check=True, timeout=120, capture_output=True)
    plot: Any = _memory_viz.trace_plot
    assert embedded(page.read_text()) == embedded(plot(read(exported)))


def test_everything_of_a_recording_is_there_again(any_recording: Path, export: Export) -> None:
    original = read(any_recording)
    exported = read(export(any_recording, "memory_viz"))
    assert comparable(exported) == comparable(original)


def comparable(snapshot: Snapshot) -> Snapshot:
    """A snapshot with the key that means the same whether it is missing or empty."""
    for trace in snapshot["device_traces"]:
        for entry in trace:
            entry.setdefault("frames", [])
    return snapshot


def test_the_latest_events_alone_make_a_smaller_file(export: Export) -> None:
    path = recording("unet+default")
    original = comparable(read(path))
    exported = comparable(read(export(path, "memory_viz", "--max-events", "500")))
    assert exported["device_traces"][0] == original["device_traces"][0][-500:]
    assert exported["segments"] == original["segments"]
    describe: Any = _memory_viz.trace
    assert describe(exported)


def test_a_protocol_that_the_page_cannot_read_becomes_one_that_it_can(
    export: Export, tmp_path: Path
) -> None:
    newer = tmp_path / "protocol5.pickle"
    newer.write_bytes(pickle.dumps(read(recording("unet+default")), protocol=5))
    data = export(newer, "memory_viz").read_bytes()
    assert data[:2] == b"\x80\x04"
