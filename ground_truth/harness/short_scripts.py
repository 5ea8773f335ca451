"""Runs short scripts on the available card and records the memory of each."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable

from run_case import environment_facts

EPILOGUE = """
import json
figures = {
    "peak": torch.cuda.max_memory_allocated(),
    "reserved": torch.cuda.max_memory_reserved(),
    "end": torch.cuda.memory_allocated(),
}
print(json.dumps(figures))
"""

Figures = dict[str, int]


def measure(code: str) -> Figures:
    """The figures that a script prints as JSON, and its peaks."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.py"
        script.write_text(code + EPILOGUE)
        done = subprocess.run(
            [sys.executable, str(script)], capture_output=True, text=True, check=False
        )
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-2000:])
    figures: Figures = {}
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            figures.update(json.loads(line))
    return figures


def measure_all(
    name: str, description: str | None, submit: Callable[[ThreadPoolExecutor], dict[str, Any]]
) -> None:
    """Runs what `submit` gives to a pool, and writes the results to `NAME.json`."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=6)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    # Memory is each process's own: several can share the card.
    with ThreadPoolExecutor(arguments.jobs) as pool:
        results = {}
        for key, started in submit(pool).items():
            results[key] = _results_of(started)
            print(key, results[key], flush=True)
    facts = {
        "command": f"python ground_truth/harness/{name}.py --out DIR",
        "environment": environment_facts(True),
        name: results,
    }
    (arguments.out / f"{name}.json").write_text(json.dumps(facts, indent=1) + "\n")


def _results_of(started: Any) -> Any:
    if isinstance(started, Future):
        return started.result()
    return {key: _results_of(each) for key, each in started.items()}
