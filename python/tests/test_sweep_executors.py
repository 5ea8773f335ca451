"""The executors of sweeps: tasks come in, results go out, each on a line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parents[1] / "ghostgpu"


def run(engine: str, jobs: int, commands: list[list[str]], folder: Path) -> list[dict[str, Any]]:
    """What the executor writes, in the order of its tasks."""
    tasks = [
        json.dumps({"number": number, "command": command, "folder": str(folder)})
        for number, command in enumerate(commands)
    ]
    done = subprocess.run(
        [sys.executable, "-m", "sweep_executors", engine, str(jobs)],
        input="\n".join(tasks) + "\n",
        env={"PYTHONPATH": str(PACKAGE), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return sorted(lines, key=lambda line: line.get("number", -1))


def python(program: str) -> list[str]:
    return [sys.executable, "-c", program]


def test_every_task_is_told_with_its_code_and_what_it_printed(tmp_path: Path) -> None:
    commands = [
        python("print('{}')"),
        python("import sys; print('why', file=sys.stderr); sys.exit(3)"),
        python("import os; print(os.getcwd())"),
        ["/nowhere/ghostgpu"],
    ]
    results = run("processes", 2, commands, tmp_path)
    assert [result["code"] for result in results] == [0, 3, 0, 2]
    assert results[0]["stdout"] == "{}\n"
    assert results[1]["stderr"] == "why\n"
    assert Path(results[2]["stdout"].strip()) == tmp_path.resolve()
    assert "No such file" in results[3]["stderr"]


def test_only_so_many_run_at_once(tmp_path: Path) -> None:
    # Each counts those that are running beside it.
    program = """
import os, pathlib, time
mine = pathlib.Path(f"{os.getpid()}.running")
mine.touch()
time.sleep(0.2)
print(len(list(pathlib.Path().glob("*.running"))))
mine.unlink()
"""
    results = run("processes", 2, [python(program)] * 6, tmp_path)
    counts = [int(result["stdout"]) for result in results]
    assert len(counts) == 6 and max(counts) <= 2


def test_an_engine_that_is_missing_is_told_with_the_way_to_install_it(tmp_path: Path) -> None:
    (tmp_path / "ray.py").write_text("raise ImportError('not here')")
    folders = [str(tmp_path), str(PACKAGE)]
    hidden = f"import runpy, sys; sys.path[:0] = {folders!r}; sys.argv[1:] = ['ray', '1']"
    start = f"{hidden}; runpy.run_module('sweep_executors', run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", start], input="", capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    [line] = [json.loads(line) for line in done.stdout.splitlines()]
    assert line["failure"].startswith("Ray is not installed")
    assert "pip install ray" in line["hint"]
