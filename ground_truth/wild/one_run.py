"""Runs one script of the bundle in a folder of its own, on a real card or on a virtual one."""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path
from typing import Any

from .manifest import Script
from .recipes import make

STARTUP = Path(__file__).resolve().parent / "startup"
KEPT_OUTPUT = 4000


def run_script(
    script: Script,
    bundle: Path,
    prefix: list[str],
    limit_s: float,
    with_events: bool = False,
    with_output: bool = False,
) -> dict[str, Any]:
    """`prefix` is what stands before the script: a python, or `ghostgpu run … --`.

    `with_output` keeps the end of what it said even if it completed.
    """
    with tempfile.TemporaryDirectory(prefix="wild-", ignore_cleanup_errors=True) as name:
        room = Path(name)
        checkout = room / "checkout"
        shutil.copytree(bundle / "repositories" / script.repository, checkout)
        for item in script.data:
            make(item.recipe, checkout / item.at, item.options)
        record = room / "record"
        record.mkdir()
        # Some scripts read data below the home folder, which was written there just now.
        (room / "home").mkdir(exist_ok=True)
        # The output goes to a file: a script may leave processes behind that hold a pipe open.
        with (room / "output").open("wb") as output:
            began = time.monotonic()
            terminal, stdin = _terminal()
            process = subprocess.Popen(
                [*prefix, *script.command],
                cwd=checkout / script.folder,
                env=_environment(script, bundle, room, with_events),
                stdin=stdin,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                code: int | None = process.wait(limit_s)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                _end_session(process)
                os.close(terminal)
                os.close(stdin)
            seconds = time.monotonic() - began
        output_end = (room / "output").read_bytes()[-KEPT_OUTPUT:].decode(errors="replace")
        records = [json.loads(file.read_text()) for file in sorted(record.glob("*.json"))]
    result = result_of(code, seconds, records, output_end)
    return {**result, "output_end": output_end} if with_output else result


def _environment(script: Script, bundle: Path, room: Path, with_events: bool) -> dict[str, str]:
    checkout = room / "checkout"
    places = [STARTUP, *(bundle / "packages" / package for package in script.packages)]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(str(place.resolve()) for place in places),
        "PYTHONHASHSEED": "0",
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(room / "home"),
        # What cuDNN answered is kept between runs, as it is for a user.
        "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache"),
        "TORCH_HOME": str(checkout / "torch-home"),
        "HF_HUB_OFFLINE": "1",
        "MPLBACKEND": "Agg",
        "WILD_RECORD": str(room / "record"),
        "WILD_SILENT": ",".join(script.silent),
        "WILD_STEPS": str(script.steps),
        "WILD_EVENTS": "1" if with_events else "",
    }
    for key, value in script.environment.items():
        environment[key] = value.replace("{checkout}", str(checkout))
    if "PYTHONPATH" in script.environment:
        environment["PYTHONPATH"] = os.pathsep.join(
            [
                *(str(place.resolve()) for place in places),
                script.environment["PYTHONPATH"].replace("{checkout}", str(checkout)),
            ]
        )
    return environment


def _terminal() -> tuple[int, int]:
    """A terminal of the usual size that nobody types on: some scripts ask `stty` how wide it is."""
    terminal, stdin = pty.openpty()
    termios.tcsetwinsize(stdin, (24, 80))
    return terminal, stdin


def _end_session(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def result_of(
    code: int | None, seconds: float, records: list[dict[str, Any]], output_end: str
) -> dict[str, Any]:
    """What one run came to; of its processes, the one that had the most memory comes first."""
    if code is None:
        outcome = "timed out"
    elif any(card["out_of_memory"] for record in records for card in record["cards"]):
        outcome = "out of memory"
    elif code != 0:
        outcome = "failed"
    elif not records:
        outcome = "used no card"
    else:
        outcome = "completed"
    result: dict[str, Any] = {"outcome": outcome, "exit_code": code, "seconds": round(seconds, 1)}
    result["processes"] = sorted(
        records, key=lambda record: [-card["peak_reserved_bytes"] for card in record["cards"]]
    )
    if outcome != "completed":
        result["output_end"] = output_end
    return result


def versions(python: str) -> dict[str, str]:
    asked = (
        "import json,platform,torch,torchvision;"
        "print(json.dumps({'python': platform.python_version(), 'torch': torch.__version__,"
        " 'torchvision': torchvision.__version__}))"
    )
    answer = subprocess.run([python, "-c", asked], check=True, stdout=subprocess.PIPE)
    return dict(json.loads(answer.stdout))


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
