"""Runs scripts through the `ghostgpu` command, as a user does, and reads its answer.

The command is taken from `GHOSTGPU_COMMAND`, else from `target/release`; the pythons from
`GHOSTGPU_TEST_PYTHON` (separated by colons, the reference first), else the one that runs the tests.
`make test-e2e` sets both. If `GHOSTGPU_TEST_SCOPE` is `short`, all pythons but the first run only
tests marked `every_torch`, and tests marked `at_length` do not run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("GHOSTGPU_COMMAND") or REPOSITORY / "target/release/ghostgpu")
IS_SHORT = os.environ.get("GHOSTGPU_TEST_SCOPE", "all") == "short"
PYTHONS = (os.environ.get("GHOSTGPU_TEST_PYTHON") or sys.executable).split(os.pathsep)

GIB = 1 << 30
MIB = 1 << 20
TIMEOUT_S = 240
"""Much longer than any of these scripts takes; a hang must not block the whole suite."""

AGENT_FAULT = "GhostGPU's agent "
"""How the agent's sentences about its own faults begin (`agent/report.py`)."""

PAGE = 2 * MIB
"""The unit in which the card hands out memory."""


@dataclass
class Answered:
    """What the command printed and wrote, and how it ended."""

    code: int
    stdout: str
    stderr: str
    answer: dict[str, Any] | None
    folder: Path

    def __getitem__(self, field: str) -> Any:
        assert self.answer is not None, f"no answer was written\n{self.stdout}\n{self.stderr}"
        return self.answer[field]

    def expect(self, code: int) -> Answered:
        assert self.code == code, f"exit code {self.code}\n{self.stdout}\n{self.stderr}"
        return self


class Rehearse(Protocol):
    """Writes a script to `train.py` in its own folder and rehearses it there."""

    def __call__(
        self,
        script: str,
        *options: str,
        command: tuple[str, ...] = (),
        environment: Mapping[str, str] = {},
        breaks_agent: bool = False,
    ) -> Answered: ...


class Ask(Protocol):
    """Runs any command of the program with the reference environment, and reads its JSON."""

    def __call__(
        self, command: str, *words: str, script: str = "", python: str = ""
    ) -> Answered: ...


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that uses `any_python` runs with each python, or only with the reference."""
    if "any_python" in metafunc.fixturenames:
        is_marked = metafunc.definition.get_closest_marker("every_torch") is not None
        pythons = PYTHONS if is_marked or not IS_SHORT else PYTHONS[:1]
        metafunc.parametrize("any_python", pythons, ids=[_torch_version(each) for each in pythons])


@cache
def _torch_version(python: str) -> str:
    program = "import importlib.metadata as m; print(m.version('torch'))"
    return "torch-" + subprocess.check_output([python, "-c", program], text=True).strip()


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The cache of cuDNN's answers, shared by all tests of one run but not with the next run."""
    yield tmp_path_factory.mktemp("cache")


def _rehearse_with(
    python: str, folder: Path, cache: Path, request: pytest.FixtureRequest
) -> Rehearse:
    # Finding the need costs another rehearsal, so only modules that test it do so.
    measures_need = getattr(request.module, "MEASURES_NEED", False)

    def rehearse(
        script: str,
        *options: str,
        command: tuple[str, ...] = (),
        environment: Mapping[str, str] = {},
        breaks_agent: bool = False,
    ) -> Answered:
        (folder / "train.py").write_text(textwrap.dedent(script))
        answer = folder / "answer.json"
        answer.unlink(missing_ok=True)
        named = any(option == "--gpu" for option in options)
        words = [str(PROGRAM), "run", "--python", python, "--json", str(answer)]
        words += [*([] if named else ["--gpu", "h200"]), *options]
        # Most tests are about single steps; `test_coverage.py` is about whole trainings.
        if not any(option in ("--steps", "--full", "--budget") for option in options):
            words += ["--steps", "3"]
        if not measures_need and "--no-retry" not in options:
            words += ["--no-retry"]
        words += ["--", *command] if command else ["train.py"]
        done = subprocess.run(
            words,
            cwd=folder,
            env={**_clean_environment(), "XDG_CACHE_HOME": str(cache), **environment},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        written = json.loads(answer.read_text()) if answer.exists() else None
        if not breaks_agent:
            assert not agent_faults(written)
        return Answered(done.returncode, done.stdout, done.stderr, written, folder)

    return rehearse


def agent_faults(answer: Any) -> list[str]:
    """Sentences about faults of the agent, anywhere in an answer."""
    if isinstance(answer, str):
        return [answer] if AGENT_FAULT in answer else []
    if isinstance(answer, dict):
        answer = list(answer.values())
    return (
        [fault for each in answer or [] for fault in agent_faults(each)]
        if isinstance(answer, list)
        else []
    )


def _clean_environment() -> dict[str, str]:
    """The environment of the tests, without variables that affect torch or the script."""
    steering = ("PYTORCH_", "CUDA_", "TORCH", "TRITON_", "LD_", "PYTHON", "NVIDIA_")
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(steering)
    }
    environment["GHOSTGPU_AGENT_DIR"] = str(REPOSITORY / "python/ghostgpu/agent")
    environment["HF_HUB_OFFLINE"] = "1"
    # The library beside the program is the one that belongs to it.
    environment.pop("GHOSTGPU_LIBRARY", None)
    return environment


@pytest.fixture
def rehearse(
    any_python: str, tmp_path: Path, shared_cache: Path, request: pytest.FixtureRequest
) -> Rehearse:
    """Rehearse with each python in turn."""
    return _rehearse_with(any_python, tmp_path, shared_cache, request)


@pytest.fixture
def rehearse_reference(
    tmp_path: Path, shared_cache: Path, request: pytest.FixtureRequest
) -> Rehearse:
    """Rehearse with the reference environment, which has more than torch."""
    return _rehearse_with(PYTHONS[0], tmp_path, shared_cache, request)


@pytest.fixture
def ask(tmp_path: Path, shared_cache: Path) -> Ask:
    """Run the program with the reference environment; the script is in `train.py`."""

    def asking(command: str, *words: str, script: str = "", python: str = "") -> Answered:
        (tmp_path / "train.py").write_text(textwrap.dedent(script))
        answer = tmp_path / "answer.json"
        answer.unlink(missing_ok=True)
        options = ["--python", python or PYTHONS[0], "--json", str(answer)]
        if command == "max-batch" and not {"--steps", "--full", "--budget"} & set(words):
            options += ["--steps", "3"]
        done = subprocess.run(
            [str(PROGRAM), command, *options, *words],
            cwd=tmp_path,
            env={**_clean_environment(), "XDG_CACHE_HOME": str(shared_cache)},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        written = json.loads(answer.read_text()) if answer.exists() else None
        assert not agent_faults(written)
        return Answered(done.returncode, done.stdout, done.stderr, written, tmp_path)

    return asking
