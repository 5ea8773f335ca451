"""The replica of PyTorch's allocator, against what a real card's allocator did.

Every history of `allocator/h200` is replayed by the example `replay` of `crates/allocator`: each
address, segment and entry of it, and each statistic after every step, must come out. What other
settings lead to is asked through the command, in `test_allocator_recordings.py`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
RECORDINGS = HERE / "allocator" / "h200"
sys.path.insert(0, str(HERE / "allocator"))

from as_text import read  # noqa: E402

BUILD = ["cargo", "build", "--release", "--locked", "--message-format=json"]
BUILD += ["-p", "ghostgpu-allocator", "--example", "replay"]

HISTORIES = sorted(path.name[: -len(".pickle.gz")] for path in RECORDINGS.glob("*.pickle.gz"))

#: Torch 2.11 does not record which pool a segment was for, and these were released before the end.
POOLS_NOT_RECORDED = ("memory-pools+default",)


def as_file(name: str, folder: Path) -> Path:
    path = folder / f"{name}.txt"
    path.write_text("\n".join(read(RECORDINGS / f"{name}.json")) + "\n")
    return path


@pytest.fixture(scope="session")
def replay() -> str:
    """The program that replays, built once: cargo takes longer than most of the replays."""
    done = subprocess.run(BUILD, cwd=HERE.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    built = [json.loads(line).get("executable") for line in done.stdout.splitlines()]
    (program,) = filter(None, built)
    return str(program)


@pytest.mark.parametrize("name", HISTORIES)
def test_a_history_of_the_card_replays_to_every_address_and_statistic(
    name: str, replay: str, tmp_path: Path
) -> None:
    command = [replay, str(as_file(name, tmp_path))]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if name in POOLS_NOT_RECORDED:
        assert "seems to have used private pools" in answer.stdout
        return
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert ": same: " in answer.stdout
