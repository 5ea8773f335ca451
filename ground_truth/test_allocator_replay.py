"""The replica of PyTorch's allocator, against what a real card's allocator did.

Every history of `allocator/h200` is replayed by the example `replay` of `crates/allocator`: each
address, segment and entry of it, and each statistic after every step, must come out. What other
settings lead to is asked through the command, in `test_allocator_recordings.py`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
RECORDINGS = HERE / "allocator" / "h200"
sys.path.insert(0, str(HERE / "allocator"))

from as_text import read  # noqa: E402

BUILT = ["cargo", "run", "--release", "--locked", "--quiet", "-p", "ghostgpu-allocator"]
REPLAY = [*BUILT, "--example", "replay", "--"]

HISTORIES = sorted(path.name[: -len(".pickle.gz")] for path in RECORDINGS.glob("*.pickle.gz"))

#: Torch 2.11 does not record which pool a segment was for, and these were released before the end.
POOLS_NOT_RECORDED = ("memory-pools+default",)


def as_file(name: str, folder: Path) -> Path:
    path = folder / f"{name}.txt"
    path.write_text("\n".join(read(RECORDINGS / f"{name}.json")) + "\n")
    return path


def replay(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*REPLAY, *words], cwd=HERE.parent, capture_output=True, text=True)


@pytest.mark.parametrize("name", HISTORIES)
def test_a_history_of_the_card_replays_to_every_address_and_statistic(
    name: str, tmp_path: Path
) -> None:
    answer = replay(str(as_file(name, tmp_path)))
    if name in POOLS_NOT_RECORDED:
        assert "seems to have used private pools" in answer.stdout
        return
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert ": same: " in answer.stdout
