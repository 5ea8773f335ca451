"""Runs scripts under the agent, the way the command line does.

`rehearse` starts a script with the agent injected but without the stand-in library: torch works on
the CPU, and the agent's check for the library is switched off. `rehearse_on_card` preloads the real
library. It and the command line are taken from `target/release`, or from where `GHOSTGPU_LIBRARY`
and `GHOSTGPU_PROGRAM` say.
"""

from __future__ import annotations

import importlib.util
import json
import os
import select
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

import pytest

from ghostgpu.agent.shared_numbers import USAGE_BYTES, USAGE_FILE, USAGE_MAGIC

# A shell that runs the tests in the background has them ignore Ctrl-C, and what they start, too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

REPOSITORY = Path(__file__).resolve().parents[2]
INJECT = REPOSITORY / "python" / "ghostgpu" / "agent" / "inject"

AGENT_FAULT = "GhostGPU's agent "
"""How the agent's sentences about its own faults begin (`agent/report.py`)."""

WITHOUT_LIBRARY = "the library cannot answer readbacks"

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
        paths = sorted(self.run_dir.glob("agent-*.json"))
        reports: list[dict[str, Any]] = [json.loads(path.read_text()) for path in paths]
        for report in reports:
            # The one fault that a run without the library must have.
            report["assumptions"] = [
                each for each in report["assumptions"] if WITHOUT_LIBRARY not in each
            ]
        return reports

    @property
    def faults(self) -> list[str]:
        """What went wrong in the agent itself."""
        sentences = [sentence for report in self.reports for sentence in report["assumptions"]]
        return [sentence for sentence in sentences if sentence.startswith(AGENT_FAULT)]

    @property
    def report(self) -> dict[str, Any]:
        reports = self.reports
        assert len(reports) == 1, f"{len(reports)} reports\n{self.stdout}\n{self.stderr}"
        return reports[0]


Rehearse = Callable[..., Rehearsal]

# Runs a script with the check for the preloaded library switched off.
DRIVER = """
import runpy, sys
import _ghostgpu.agent.preload
_ghostgpu.agent.preload.require = lambda: None
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def make_session(folder: Path, **changes: Any) -> Path:
    """A session file like the command line's, but without cards."""
    run_dir = folder / "run"
    run_dir.mkdir(exist_ok=True)
    session = {
        "run_dir": str(run_dir),
        "devices": [],
        "steps": 3,
        "keep_checkpoints": False,
        "full_initialisation": False,
        **changes,
    }
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


class TorchServer:
    """A process in which torch has been imported, and that runs scripts in copies of itself."""

    TIMEOUT_S = 300

    def __init__(self, library_dir: Path | None) -> None:
        self._has_library = library_dir is not None
        variables = {**os.environ, "GHOSTGPU_SESSION": ""}
        if library_dir is not None:
            variables["LD_PRELOAD"] = str(library_dir / "libghostgpu.so")
            variables["LD_LIBRARY_PATH"] = str(library_dir)
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("torch_server.py"))],
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, folder: Path, variables: dict[str, str], run_dir: Path) -> Rehearsal:
        """Run `script.py` in `folder`."""
        assert self._process.stdin is not None and self._process.stdout is not None
        outputs = {name: folder / f"{name}.txt" for name in ("stdout", "stderr")}
        for path in outputs.values():
            path.unlink(missing_ok=True)
        request = {
            "folder": str(folder),
            "script": "script.py",
            "environment": variables,
            "inject": str(INJECT),
            "has_library": self._has_library,
            **{name: str(path) for name, path in outputs.items()},
        }
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        readable, _, _ = select.select([self._process.stdout], [], [], self.TIMEOUT_S)
        assert readable, "the script does not end"
        code = int(self._process.stdout.readline())
        output, errors = (path.read_text(errors="replace") for path in outputs.values())
        return Rehearsal(code, output, errors, run_dir)

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture(scope="session")
def server_on_host() -> Iterator[TorchServer]:
    server = TorchServer(None)
    yield server
    server.close()


@pytest.fixture(scope="session")
def library_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library under the names by which programs look for it."""
    library = built("libghostgpu.so", "GHOSTGPU_LIBRARY")
    links = tmp_path_factory.mktemp("lib")
    for name in ("libghostgpu.so", "libcuda.so.1", "libnvidia-ml.so.1"):
        (links / name).symlink_to(library)
    return links


@pytest.fixture(scope="session")
def server_on_card(library_dir: Path) -> Iterator[TorchServer]:
    server = TorchServer(library_dir)
    yield server
    server.close()


def begins_with_torch(script: str) -> bool:
    """Whether nothing comes before the import of torch that may matter to it.

    Such a script may run in a copy of a process that has torch; any other has one of its own.
    """
    lines = (line.strip() for line in script.splitlines())
    first = next((line for line in lines if line and not line.startswith("#")), "")
    return first.startswith(("import ", "from torch")) and "torch" in first


@pytest.fixture
def rehearse(tmp_path: Path, request: pytest.FixtureRequest) -> Rehearse:
    """Run a script (its text) on the CPU under the agent; keywords change the session."""

    def run(script: str, **changes: Any) -> Rehearsal:
        session = make_session(tmp_path, **changes)
        (tmp_path / "script.py").write_text(textwrap.dedent(script))
        # Without the library some parts cannot be installed: faults are not looked at.
        if begins_with_torch(script):
            server: TorchServer = request.getfixturevalue("server_on_host")
            return server.run(tmp_path, environment(session), session.parent)
        arguments = ["-c", DRIVER, str(tmp_path / "script.py")]
        return run_python(arguments, tmp_path, environment(session), session.parent)

    return run


def built(name: str, variable: str) -> Path:
    """A built program or library; skips the test if there is none."""
    path = Path(os.environ.get(variable) or REPOSITORY / "target" / "release" / name)
    if not path.exists():
        pytest.skip(f"{name} is not built (cargo build --release)")
    return path


@pytest.fixture(scope="session")
def h200_session() -> dict[str, Any]:
    """The session that the command line itself makes for an H200."""
    program = built("ghostgpu", "GHOSTGPU_PROGRAM")
    show = "import os; print(open(os.environ['GHOSTGPU_SESSION']).read())"
    command = [sys.executable, "-S", "-c", show]
    done = subprocess.run(
        [program, "run", "--gpu", "h200", "--no-cudnn", "--python", sys.executable, "--", *command],
        capture_output=True,
        text=True,
        check=False,
    )
    session, _ = json.JSONDecoder().raw_decode(done.stdout)
    assert isinstance(session, dict), done.stderr
    return session


@pytest.fixture
def rehearse_on_card(
    tmp_path: Path,
    h200_session: dict[str, Any],
    library_dir: Path,
    request: pytest.FixtureRequest,
) -> Rehearse:
    """Run a script (its text) on a virtual H200; keywords change the session, `card` the card."""

    def run(
        script: str,
        *,
        card: dict[str, Any] | None = None,
        breaks_agent: bool = False,
        **changes: Any,
    ) -> Rehearsal:
        (device,) = h200_session["devices"]
        devices = [{**device, **(card or {})}]
        fields = {**h200_session, "devices": devices, "coverage": None, "steps": 3, **changes}
        fields.pop("run_dir")
        session = make_session(tmp_path, **fields)
        # As `crates/session/src/card_usage.rs` has it: magic number, number of devices, zeros.
        usage = USAGE_MAGIC.to_bytes(8, "little") + len(devices).to_bytes(8, "little")
        (session.parent / USAGE_FILE).write_bytes(usage.ljust(USAGE_BYTES, b"\0"))
        (tmp_path / "script.py").write_text(textwrap.dedent(script))
        variables = environment(
            session,
            LD_PRELOAD=str(library_dir / "libghostgpu.so"),
            LD_LIBRARY_PATH=str(library_dir),
        )
        if begins_with_torch(script):
            server: TorchServer = request.getfixturevalue("server_on_card")
            done = server.run(tmp_path, variables, session.parent)
        else:
            done = run_python(["script.py"], tmp_path, variables, session.parent)
        assert breaks_agent or not done.faults
        return done

    return run
