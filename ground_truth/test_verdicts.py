"""Whole trainings end on the virtual card with the memory that they need on the real one.

Every job runs without a limit, at the smallest limit that a real H200 needed, and 2 MiB below it
(`verdicts/smallest_limits.py --check`).
"""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from test_exactness import HERE, PLAIN, REAL, ghostgpu

from scope import is_short

try:
    import tomllib
except ImportError:
    import tomli as tomllib  # type: ignore[import-not-found, no-redef]

VERDICTS = HERE / "verdicts"
RECORDING = REAL / "verdicts" / "verdicts.json"
RECORDED: dict[str, Any] = json.loads(RECORDING.read_text())["verdicts"]
#: A plain loop, one that keeps memory, varying sizes, and an evaluation that needs most.
SENTINELS = ("no-leak", "leak-outputs", "graph", "resnet18-eval-with-grad")
JOBS: dict[str, Any] = tomllib.loads((VERDICTS / "jobs.toml").read_text())["jobs"]
CHECKED = SENTINELS if is_short() else tuple(RECORDED)
#: Runs in processes of their own, of some jobs alone.
OWN_PROCESSES: dict[str, Any] = json.loads((RECORDING.parent / "own_processes.json").read_text())[
    "jobs"
]


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    out = tmp_path_factory.mktemp("verdicts")
    words = [str(VERDICTS / "smallest_limits.py"), "--out", str(out), "--workers", "2"]
    words += ["--check", str(RECORDING), "--jobs", ",".join(CHECKED)]
    done = subprocess.run([*ghostgpu(*PLAIN), *words], capture_output=True, text=True, check=False)
    written = out / "verdicts.json"
    assert written.exists(), done.stdout[-2000:] + done.stderr[-2000:]
    results: dict[str, Any] = json.loads(written.read_text())["verdicts"]
    return results


@pytest.mark.parametrize("name", CHECKED)
def test_a_training_ends_at_the_smallest_memory_of_the_card_and_not_below(
    name: str, checked: dict[str, Any]
) -> None:
    ours, real = checked[name], RECORDED[name]
    outcomes = [ours[key]["outcome"] for key in ("unlimited", "at_smallest", "below")]
    is_equal = outcomes == ["ended", "ended", "out-of-memory"]
    keys = ("peak_allocated_bytes", "peak_reserved_bytes")
    for key in keys:
        is_equal = is_equal and ours["unlimited"][key] == real["unlimited"][key]
    is_equal = is_equal and ours["at_smallest"]["retries"] == real["at_smallest"]["retries"]
    # A job that has become equal leaves the list of those that are not.
    assert is_equal != ("differs" in JOBS[name]), (ours, real)


def test_every_job_was_measured_with_its_present_command() -> None:
    assert {name: job["command"] for name, job in JOBS.items()} == {
        name: job["command"] for name, job in {**OWN_PROCESSES, **RECORDED}.items()
    }
