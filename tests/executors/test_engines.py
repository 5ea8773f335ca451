"""The engines of sweeps, each with a cluster on this machine; `make test-executors` has them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "python/ghostgpu"
TIMEOUT_S = 240


@pytest.mark.parametrize("engine", ["dask", "ray", "submitit"])
def test_every_task_comes_back_from_the_engine(engine: str, tmp_path: Path) -> None:
    programs = {
        0: "print('{\"cards\": []}')",
        1: "import sys; print('why', file=sys.stderr); sys.exit(3)",
        2: "import os; print(os.getcwd())",
        3: "print('last')",
    }
    tasks = [
        {"number": number, "command": [sys.executable, "-c", program], "folder": str(tmp_path)}
        for number, program in programs.items()
    ]
    done = subprocess.run(
        [sys.executable, "-m", "sweep_executors", engine, "2"],
        input="\n".join(map(json.dumps, tasks)),
        env={**os.environ, "PYTHONPATH": str(PACKAGE)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    written = [line for line in done.stdout.splitlines() if line.startswith("{")]
    results = {result["number"]: result for result in map(json.loads, written)}
    assert sorted(results) == [0, 1, 2, 3], done.stderr
    assert [results[number]["code"] for number in range(4)] == [0, 3, 0, 0]
    assert json.loads(results[0]["stdout"]) == {"cards": []}
    assert results[1]["stderr"].strip() == "why"
    assert Path(results[2]["stdout"].strip()) == tmp_path.resolve()
    left = [path.name for path in tmp_path.iterdir()]
    assert not left, "nothing stays in the folder"
