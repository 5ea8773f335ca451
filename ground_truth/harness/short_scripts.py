"""Runs short scripts on the available card and records the memory of each.

Every script runs in a fork of this process, which has imported torch and does not use the card
before the last of them has ended: as fresh as a process of its own, without an import each.
"""

from __future__ import annotations

import argparse
import functools
import json
import runpy
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from forked import ForkedProcess, import_everything
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
#: A script has a path of keys, a tuple: `("summed-loss", "with")`.
Scripts = Mapping[Any, str]


def measure_all(name: str, description: str | None, scripts: Scripts) -> None:
    """Runs every script, several at a time, and writes their figures to `NAME.json`."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=6)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    import_everything()
    with tempfile.TemporaryDirectory() as folder:
        measured = run_several(scripts, arguments.jobs, Path(folder))
    results: dict[str, Any] = {}
    for (*path, last), figures in measured.items():
        place = results
        for key in path:
            place = place.setdefault(key, {})
        place[last] = figures
    facts = {
        "command": f"python ground_truth/harness/{name}.py --out DIR",
        "environment": environment_facts(True),
        name: results,
    }
    (arguments.out / f"{name}.json").write_text(json.dumps(facts, indent=1) + "\n")


def run_several(scripts: Scripts, jobs: int, folder: Path) -> dict[tuple[str, ...], Figures]:
    """The figures of every script. Memory is each process's own: several can share the card."""
    waiting = list(scripts)
    running: dict[tuple[str, ...], tuple[ForkedProcess, Path]] = {}
    results: dict[tuple[str, ...], Figures] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            key = waiting.pop(0)
            script = folder / f"{'+'.join(key)}.py"
            script.write_text(scripts[key] + EPILOGUE)
            output = script.with_suffix(".log")
            running[key] = (ForkedProcess(functools.partial(run_script, script), output), output)
        for key, (process, output) in list(running.items()):
            if process.poll() is not None:
                del running[key]
                results[key] = figures_in(output, process.returncode)
                print(*key, results[key], flush=True)
        time.sleep(0.02)
    return {key: results[key] for key in scripts}


def run_script(script: Path) -> int:
    sys.argv = [str(script)]
    runpy.run_path(str(script), run_name="__main__")
    return 0


def figures_in(output: Path, code: int | None) -> Figures:
    """The figures that a script printed as JSON, and its peaks."""
    text = output.read_text()
    if code != 0:
        raise RuntimeError(f"{output.stem} ended with status {code}\n{text[-2000:]}")
    figures: Figures = {}
    for line in text.splitlines():
        if line.startswith("{"):
            figures.update(json.loads(line))
    return figures
