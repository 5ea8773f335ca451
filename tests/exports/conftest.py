"""Exports recordings of a real card, for readers that we did not write.

The program that exports is taken from `GHOSTGPU_EXPORT`, else from `target/release/examples`;
`make test-exports` builds it.
"""

from __future__ import annotations

import os
import pickle
import subprocess
from pathlib import Path

import pytest
from recordings import (
    REPOSITORY,
    WITH_STACKS,
    WITHOUT_STACKS,
    CutOff,
    Export,
    read,
    recording,
)

PROGRAM = Path(os.environ.get("GHOSTGPU_EXPORT") or REPOSITORY / "target/release/examples/export")
TIMEOUT_S = 240


@pytest.fixture
def export(tmp_path: Path) -> Export:
    def export(snapshot: Path, to: str, *options: str) -> Path:
        out = tmp_path / f"{snapshot.name}{''.join(options)}.{to}"
        words = [str(PROGRAM), str(snapshot), "--to", to, "--out", str(out), *options]
        done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        assert done.returncode == 0, done.stderr
        return out

    return export


@pytest.fixture(params=WITH_STACKS + WITHOUT_STACKS)
def any_recording(request: pytest.FixtureRequest) -> Path:
    """Each kind of recording in turn."""
    return recording(request.param)


@pytest.fixture(params=WITH_STACKS)
def stacks_recording(request: pytest.FixtureRequest) -> Path:
    """Each recording with stacks in turn."""
    return recording(request.param)


@pytest.fixture
def cut_off(tmp_path: Path) -> CutOff:
    def cut_off(snapshot: Path, lost: int) -> Path:
        data = read(snapshot)
        data["device_traces"] = [trace[lost:] for trace in data["device_traces"]]
        path = tmp_path / "cut-off.pickle"
        path.write_bytes(pickle.dumps(data))
        return path

    return cut_off
