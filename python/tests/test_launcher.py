"""The console command hands over to the native program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ghostgpu import _launcher

PACKAGE_FOLDER = str(Path(_launcher.__file__).resolve().parents[1])


def start(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": PACKAGE_FOLDER},
    )


def test_importing_the_package_does_not_import_torch() -> None:
    done = start("-c", "import sys, ghostgpu; print('torch' in sys.modules, ghostgpu.__version__)")
    assert done.stdout.split() == ["False", "0.1.0"]


def test_a_missing_native_program_is_one_sentence_a_hint_and_code_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_launcher, "native_program", lambda: tmp_path / "ghostgpu")
    with pytest.raises(SystemExit) as ended:
        _launcher.main()
    assert ended.value.code == 2
    sentence, blank, hint = capsys.readouterr().err.splitlines()
    assert sentence.startswith("error: the native part of GhostGPU is missing")
    assert blank == ""
    assert hint.startswith("hint: ")


def test_the_native_program_gets_the_arguments_and_the_interpreter(tmp_path: Path) -> None:
    program = tmp_path / "ghostgpu"
    program.write_text('#!/bin/sh\necho "$@" "$GHOSTGPU_LAUNCHER_PYTHON"\nexit 3\n')
    program.chmod(0o755)
    code = f"""
import sys, pathlib
from ghostgpu import _launcher
_launcher.native_program = lambda: pathlib.Path({str(program)!r})
sys.argv = ["ghostgpu", "run", "--gpu", "t4"]
_launcher.main()
"""
    done = start("-c", code)
    assert done.returncode == 3
    assert done.stdout.split() == ["run", "--gpu", "t4", sys.executable]
