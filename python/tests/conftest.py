"""Runs scripts under the agent, the way the command line does.

`rehearse` starts a script with the agent injected but without the stand-in library: torch works on
the CPU, and the agent's check for the library is switched off. `rehearse_on_card` preloads the real
library, taken from `GHOSTGPU_LIBRARY` or from `target/release`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
INJECT = REPOSITORY / "python" / "ghostgpu" / "agent" / "inject"

LEDGER_BYTES = 64 + 64 * 16 + 256 * (8 + 64 * 8)

HAS_TORCH = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed")


@dataclass
class Rehearsal:
    """What a script left behind."""

    code: int
    stdout: str
    stderr: str
    run_dir: Path

    @property
    def reports(self) -> list[dict[str, Any]]:
        return [json.loads(path.read_text()) for path in sorted(self.run_dir.glob("agent-*.json"))]

    @property
    def report(self) -> dict[str, Any]:
        reports = self.reports
        assert len(reports) == 1, f"{len(reports)} reports\n{self.stdout}\n{self.stderr}"
        return reports[0]


Rehearse = Callable[..., Rehearsal]

# Runs a script with the check for the preloaded library switched off.
DRIVER = """
import runpy, sys
import _ghostgpu_agent.preload
_ghostgpu_agent.preload.require = lambda: None
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def make_session(folder: Path, **changes: Any) -> Path:
    """A session file like the command line's, for one small card."""
    run_dir = folder / "run"
    run_dir.mkdir(exist_ok=True)
    card = {
        "name": "NVIDIA H200",
        "capability": {"major": 9, "minor": 0},
        "total_bytes": 150109880320,
        "multiprocessors": 132,
        "max_threads_per_multiprocessor": 2048,
        "max_blocks_per_multiprocessor": 32,
        "shared_memory_per_block_optin_bytes": 232448,
        "shared_memory_per_multiprocessor_bytes": 233472,
        "reserved_shared_memory_per_block_bytes": 1024,
        "l2_cache_bytes": 62914560,
        "persisting_l2_cache_max_bytes": 39321600,
        "clock_khz": 1980000,
        "memory_clock_khz": 3201000,
        "memory_bus_bits": 6144,
        "is_integrated": False,
        "ecc_enabled": True,
        "pci": {"domain": 0, "bus": 1, "device": 0},
        "pci_device_number": 0x2335,
        "overhead": {
            "context_bytes": 552402944,
            "kernels_bytes": 0,
            "blas_handle_bytes": 0,
            "blas_code_bytes": 0,
            "dnn_handle_bytes": 0,
            "dnn_code_bytes": 0,
            "stream_bytes": 0,
        },
    }
    card.update(changes.pop("card", {}))
    session: dict[str, Any] = {
        "run_dir": str(run_dir),
        "devices": [card],
        "elastic": False,
        "steps": 3,
        "trace": None,
        "cudnn": "recorded",
        "cudnn_program": None,
        "cudnn_cache_dir": None,
        "keep_checkpoints": False,
        "full_initialisation": False,
    }
    session.update(changes)
    # The layout is in `crates/session/src/ledger.rs`: a magic number, the number of devices, zeros.
    ledger = b"GHOSTLG1" + len(session["devices"]).to_bytes(8, "little")
    (run_dir / "card.ledger").write_bytes(ledger.ljust(LEDGER_BYTES, b"\0"))
    path = run_dir / "session.json"
    path.write_text(json.dumps(session))
    return path


def environment(session: Path, **changes: str) -> dict[str, str]:
    """The environment the command line starts a script with, less the library."""
    result = {**os.environ, "GHOSTGPU_SESSION": str(session), "PYTHONPATH": str(INJECT), **changes}
    # A test's own coverage or warnings settings must not reach the script.
    result.pop("PYTHONWARNINGS", None)
    return result


def run_python(
    arguments: list[str], folder: Path, variables: dict[str, str], run_dir: Path
) -> Rehearsal:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return Rehearsal(done.returncode, done.stdout, done.stderr, run_dir)


@pytest.fixture
def rehearse(tmp_path: Path) -> Rehearse:
    """Run a script (its text) on the CPU under the agent; keywords change the session."""

    def run(script: str, **changes: Any) -> Rehearsal:
        session = make_session(tmp_path, **changes)
        (tmp_path / "script.py").write_text(textwrap.dedent(script))
        arguments = ["-c", DRIVER, str(tmp_path / "script.py")]
        return run_python(arguments, tmp_path, environment(session), session.parent)

    return run


def stand_in_library() -> Path | None:
    """The built stand-in library, if there is one."""
    named = os.environ.get("GHOSTGPU_LIBRARY")
    path = Path(named) if named else REPOSITORY / "target" / "release" / "libghostgpu.so"
    return path if path.exists() else None


@pytest.fixture
def rehearse_on_card(tmp_path: Path) -> Rehearse:
    """Run a script (its text) on the virtual card; keywords change the session."""
    library = stand_in_library()
    if library is None:
        pytest.skip("the stand-in library is not built (cargo build --release)")

    def run(script: str, **changes: Any) -> Rehearsal:
        session = make_session(tmp_path, **changes)
        (tmp_path / "script.py").write_text(textwrap.dedent(script))
        variables = environment(session, LD_PRELOAD=str(library))
        return run_python(["script.py"], tmp_path, variables, session.parent)

    return run
