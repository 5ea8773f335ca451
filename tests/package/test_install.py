"""`pip install .` gives the command and everything it needs, and no torch."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from installed import ALLOCATES_ONE_GIB, REPOSITORY, TEST_PYTHONS, empty_environment, run


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A fresh environment with nothing but this project in it."""
    folder = empty_environment(tmp_path_factory.mktemp("installed") / "environment with a space")
    pip = [str(folder / "bin/python"), "-m", "pip", "--disable-pip-version-check"]
    # In the default target folder, what was built for the tests is used again.
    subprocess.run([*pip, "install", "--quiet", str(REPOSITORY)], check=True)
    yield folder


def test_nothing_else_is_installed(environment: Path) -> None:
    listed = run(environment, "pip", "list", "--format=freeze").stdout
    names = {line.partition("==")[0] for line in listed.splitlines()}
    assert "ghostgpu" in names
    assert names <= {"ghostgpu", "pip", "setuptools", "wheel"}


def test_the_command_knows_its_cards(environment: Path) -> None:
    done = run(environment, "ghostgpu", "gpus", "3060")
    assert done.returncode == 0, done.stderr
    assert "RTX 3060" in done.stdout


def test_the_module_is_the_command(environment: Path) -> None:
    command = run(environment, "ghostgpu", "--version")
    module = run(environment, "python", "-m", "ghostgpu", "--version")
    assert command.returncode == 0, command.stderr
    assert module.stdout == command.stdout
    version = run(environment, "python", "-c", "import ghostgpu; print(ghostgpu.__version__)")
    assert command.stdout.split()[-1] == version.stdout.strip()


def test_without_torch_the_command_says_so(environment: Path, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import torch\n")
    python = str(environment / "bin/python")
    done = run(environment, "ghostgpu", "run", "--gpu", "h200", "--python", python, str(script))
    assert done.returncode == 2
    assert "there is no torch" in done.stderr


def test_another_environments_torch_is_rehearsed(environment: Path, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(ALLOCATES_ONE_GIB)
    words = ("run", "--verbose", "--gpu", "h200", "--python", TEST_PYTHONS[0], str(script))
    done = run(environment, "ghostgpu", *words)
    assert done.returncode == 0, done.stderr
    assert "1,073,741,824 bytes" in done.stdout
    assert str(environment) not in done.stdout.splitlines()[0]
