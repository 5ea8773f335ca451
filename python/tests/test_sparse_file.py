"""Zeros take no room in a checkpoint, and everything else is in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ghostgpu.agent.files.sparse_file import SparseFile

BLOCK = 1 << 20

CONTENTS = {
    "nothing": [],
    "only zeros": [bytes(3 * BLOCK)],
    "zeros at the end": [b"start", bytes(2 * BLOCK)],
    "zeros between": [b"start", bytes(2 * BLOCK), b"end"],
    "zeros in a block with others": [bytes(BLOCK - 1) + b"x" + bytes(BLOCK)],
    "no zeros": [b"ab" * BLOCK],
}


@pytest.mark.parametrize("parts", CONTENTS.values(), ids=CONTENTS.keys())
def test_a_sparse_file_reads_as_what_was_written(tmp_path: Path, parts: list[bytes]) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(b"something older and longer" * BLOCK)
    file = SparseFile(str(path))
    for part in parts:
        assert file.write(part) == len(part)
    file.close()
    assert path.read_bytes() == b"".join(parts)


def test_zeros_take_no_room(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    file = SparseFile(str(path))
    file.write(b"header")
    file.write(memoryview(bytearray(64 * BLOCK)))
    file.write(b"footer")
    file.close()
    assert path.stat().st_size == 64 * BLOCK + 12
    assert path.stat().st_blocks * 512 < 4 * BLOCK
