"""The script's side of copies: several run at the same time, and none outlives the command line."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

SERVER = """
import pathlib, sys, time
from ghostgpu.agent.forks.fork_server import ForkServer
request = ForkServer(sys.argv[1]).serve()
if request is None:
    sys.exit(0)
folder = pathlib.Path(request["run_dir"])
folder.joinpath("begun").touch()
while not pathlib.Path(request["waits_for"]).exists():
    time.sleep(0.01)
sys.exit(request["code"])
"""


class Line:
    """The command line's side."""

    def __init__(self, folder: Path) -> None:
        path = str(folder / "socket")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(path)
        listener.listen()
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
        words = [sys.executable, "-c", SERVER, path]
        self.process = subprocess.Popen(words, env=environment)
        listener.settimeout(60)
        self._line, _ = listener.accept()
        self._line.settimeout(60)
        listener.close()
        self._file = self._line.makefile("r")

    def ask(self, run_dir: Path, waits_for: Path, code: int) -> None:
        run_dir.mkdir()
        request = {"run_dir": str(run_dir), "waits_for": str(waits_for), "code": code}
        self._line.sendall(json.dumps(request).encode() + b"\n")

    def answer(self) -> tuple[str, int]:
        message = json.loads(self._file.readline())
        return Path(message["run_dir"]).name, message["status"]

    def hang_up(self) -> None:
        self._file.close()
        self._line.close()


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    made = Line(tmp_path)
    yield made
    made.hang_up()
    made.process.wait(60)


def until_begun(run_dir: Path) -> None:
    for _ in range(3000):
        if (run_dir / "begun").exists():
            return
        time.sleep(0.02)
    raise AssertionError(f"{run_dir} has not begun")


def test_copies_run_at_the_same_time_and_say_whose_end_it_was(line: Line, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    # Each ends when the other has begun.
    line.ask(one, two / "begun", 3)
    line.ask(two, one / "begun", 4)
    assert sorted([line.answer(), line.answer()]) == [("one", 3), ("two", 4)]
    three = tmp_path / "three"
    line.ask(three, one / "begun", 5)
    assert line.answer() == ("three", 5)


def test_copies_do_not_outlive_the_command_line(line: Line, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for run_dir in (one, two):
        line.ask(run_dir, tmp_path / "never", 0)
        until_begun(run_dir)
    children = Path(f"/proc/{line.process.pid}/task/{line.process.pid}/children")
    copies = [int(pid) for pid in children.read_text().split()]
    assert len(copies) == 2
    line.hang_up()
    assert line.process.wait(60) == 0
    for pid in copies:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


DRAWING = """
import os, random
from ghostgpu.agent.forks.fork_server import fork
random.seed(3)
random.random()
pid = fork()
if pid != 0:
    os.waitpid(pid, 0)
print(random.random())
"""


def test_a_copy_draws_the_random_numbers_that_the_script_would_have_drawn() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    words = [sys.executable, "-c", DRAWING]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    of_copy, of_script = done.stdout.split()
    assert of_copy == of_script
