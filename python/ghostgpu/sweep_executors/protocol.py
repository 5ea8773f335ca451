"""What goes in and what comes out: a JSON object on each line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Task:
    """One command line, and the folder that it runs in."""

    number: int
    command: list[str]
    folder: str

    def options(self) -> dict[str, Any]:
        """What `subprocess.run` is called with beside the command."""
        return {
            "cwd": self.folder,
            "stdin": subprocess.DEVNULL,
            "capture_output": True,
            "text": True,
            "errors": "replace",
            "check": False,
        }


class MissingEngine(Exception):
    """The engine is not installed."""

    def __init__(self, engine: str, package: str) -> None:
        super().__init__(f"{engine} is not installed in the python `{sys.executable}`")
        self.hint = f"`{sys.executable} -m pip install {package}` installs it"


def read_tasks(lines: Iterable[str]) -> Iterator[Task]:
    for line in lines:
        if line.strip():
            fields = json.loads(line)
            yield Task(fields["number"], fields["command"], fields["folder"])


def tell(task: Task, done: subprocess.CompletedProcess[str]) -> None:
    """Write how a task ended."""
    _write(
        {
            "number": task.number,
            "code": done.returncode,
            "stdout": done.stdout or "",
            "stderr": done.stderr or "",
        }
    )


def tell_lost(task: Task, because: BaseException) -> None:
    """Write that the engine lost a task."""
    reason = str(because).strip() or type(because).__name__
    _write({"number": task.number, "code": 2, "stdout": "", "stderr": f"ghostgpu: {reason}"})


def tell_missing(missing: MissingEngine) -> None:
    _write({"failure": str(missing), "hint": missing.hint})


def _write(fields: dict[str, Any]) -> None:
    print(json.dumps(fields), flush=True)
