"""Sizes in the agent's sentences look like those in answers."""

from __future__ import annotations

from pathlib import Path

from ghostgpu.agent.sizes import human
from ghostgpu.tricks.catalogue import bytes_of, tricks

TABLE = Path(__file__).resolve().parents[2] / "crates/text/sizes.tsv"


def test_sizes_are_written_as_in_every_answer() -> None:
    lines = [line for line in TABLE.read_text().splitlines() if not line.startswith("#")]
    assert len(lines) > 10
    for line in lines:
        size, words = line.split("\t")
        assert human(int(size)) == words


def test_the_defaults_of_tricks_are_sizes() -> None:
    options = [option for trick in tricks().values() for option in trick["options"]]
    sizes = [option["default"] for option in options if option["type"] == "size"]
    assert sizes and all(bytes_of(size) for size in sizes)
