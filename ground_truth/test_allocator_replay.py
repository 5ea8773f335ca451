"""The replica of PyTorch's allocator, against what a real card's allocator did.

Every history of `allocator/h200` is replayed by the example `replay` of `crates/allocator`: each
address, segment and entry of it, and each statistic after every step, must come out. And under
other settings the same histories must lead to what the jobs really reserved under those settings.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Dict, List

import pytest

HERE = Path(__file__).resolve().parent
RECORDINGS = HERE / "allocator" / "h200"
sys.path.insert(0, str(HERE / "allocator"))

from as_text import read  # noqa: E402
from recordings import SETTINGS  # noqa: E402

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


def reserved_on_the_card(job: str) -> Dict[str, int]:
    """The peak of what a job reserved, by the name of the setting; without those with a cap."""
    found = {}
    for setting in SETTINGS:
        path = RECORDINGS / f"{job}+{setting}.json"
        if path.exists():
            facts = json.loads(path.read_text())
            if facts["outcome"] == "finished":
                found[setting] = facts["statistics"]["reserved_bytes.all.peak"][-1]
    return found


def test_under_other_settings_jobs_reserve_what_they_really_did(tmp_path: Path) -> None:
    jobs = [name[: -len("+default")] for name in HISTORIES if name.endswith("+default")]
    equal: List[str] = []
    far: List[str] = []
    asked_in_all = 0
    for job in jobs:
        real = reserved_on_the_card(job)
        words = [word for setting in real for word in ("--set", SETTINGS[setting])]
        answer = replay(str(as_file(f"{job}+default", tmp_path)), *words)
        assert answer.returncode == 0, answer.stdout + answer.stderr
        asked = [int(number) for number in re.findall(r"reserves (\d+) bytes", answer.stdout)]
        assert len(asked) == len(real), answer.stdout
        asked_in_all += len(asked)
        for (setting, bytes_there), bytes_here in zip(real.items(), asked):
            if bytes_here == bytes_there:
                equal.append(f"{job}+{setting}")
            elif abs(bytes_here - bytes_there) > 0.05 * bytes_there:
                far.append(f"{job}+{setting}: {bytes_here} here, {bytes_there} there")
    # Up to 2.11 addresses decide between equal blocks, and where the driver finds gaps differs from
    # process to process: the others come close.
    assert not far
    assert len(equal) >= 0.93 * asked_in_all, (len(equal), asked_in_all)
    assert len({name.split("+")[0] for name in equal}) >= 12


@pytest.mark.parametrize("path", sorted(RECORDINGS.glob("*GiB.json")), ids=lambda path: path.stem)
def test_with_less_memory_a_job_ends_as_it_really_did(path: Path, tmp_path: Path) -> None:
    facts = json.loads(path.read_text())
    name = f"{facts['job']}+default"
    if name not in HISTORIES:
        pytest.skip("its history without a cap is not recorded")
    total = facts["environment"]["total_bytes"]
    limit = int(facts["cap_gib"] * 2**30 / total * total)
    words = ("--limit", str(limit), "--set", facts["settings"])
    answer = replay(str(as_file(name, tmp_path)), *words)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    fails = "fails at" in answer.stdout
    assert fails == (facts["outcome"] == "oom"), answer.stdout
    statistics = facts["statistics"]
    reserved, retries = re.findall(r"reserves (\d+) bytes, (\d+) retries", answer.stdout)[0]
    real = statistics["reserved_bytes.all.peak"][-1]
    assert abs(int(reserved) - real) <= 0.02 * real
    if statistics["num_ooms"][-1] <= 1:
        # Otherwise the program caught failures, and tried something else.
        assert int(retries) == statistics["num_alloc_retries"][-1]
