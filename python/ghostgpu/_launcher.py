"""The console command: hands over to the native program that is installed beside this package."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

LAUNCHER_PYTHON_VARIABLE = "GHOSTGPU_LAUNCHER_PYTHON"
"""Tells the native program which interpreter the command belongs to: the one it runs scripts with
unless the user names another."""

EXIT_OWN_FAILURE = 2


def native_program() -> Path:
    """Where the installation puts the native program."""
    return Path(__file__).resolve().parent / "_native" / "ghostgpu"


def main() -> NoReturn:
    """Replace this process by the native program, with the same arguments."""
    program = native_program()
    os.environ[LAUNCHER_PYTHON_VARIABLE] = sys.executable
    try:
        os.execv(program, [str(program), *sys.argv[1:]])
    except FileNotFoundError:
        _fail(
            f"the native part of GhostGPU is missing: {program}",
            "install the package again (`pip install --force-reinstall ghostgpu`), or build it "
            "with `make build` in a checkout",
        )
    except OSError as error:
        _fail(
            f"the native part of GhostGPU cannot be started: {program}: {error.strerror}",
            "it is built for Linux on x86-64 and must be executable",
        )


def _fail(sentence: str, hint: str) -> NoReturn:
    print(f"error: {sentence}\n\nhint: {hint}", file=sys.stderr)
    raise SystemExit(EXIT_OWN_FAILURE)
