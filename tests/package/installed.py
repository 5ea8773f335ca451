"""Runs what was installed into an environment, as a user does who has no checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
TEST_PYTHONS = (os.environ.get("GHOSTGPU_TEST_PYTHON") or sys.executable).split(os.pathsep)

# Variables that would make the installed command use parts of the checkout.
CHECKOUT_VARIABLES = ("GHOSTGPU_LIBRARY", "GHOSTGPU_AGENT_DIR", "GHOSTGPU_COMMAND", "PYTHONPATH")

ALLOCATES_ONE_GIB = "import torch\ntorch.zeros(1 << 28, device='cuda')\nprint(torch.__file__)\n"


def empty_environment(folder: Path) -> Path:
    """A fresh environment with nothing but pip in it."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    return folder


def run(environment: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name not in CHECKOUT_VARIABLES}
    return subprocess.run(
        [str(environment / "bin" / words[0]), *words[1:]],
        cwd=environment,
        env={**clean, **variables},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
