"""Runs the scripts of a bundle, each in a process of its own, and writes what each came to.

    python ground_truth/wild measure --bundle BUNDLE --out h200.json --jobs 8
    python ground_truth/wild measure --bundle BUNDLE --out virtual.json --virtual h200

The first measures a real card. The second asks the virtual one, by `ghostgpu run --full`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from .manifest import Script, chosen_scripts, read_manifest
from .one_run import run_script, say, versions


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="wild measure",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--virtual", metavar="CARD", help="rehearse on this virtual card instead")
    parser.add_argument("--jobs", type=int, default=1, help="scripts that run at the same time")
    parser.add_argument("--only", default="*", help="names of scripts, with * for any part")
    parser.add_argument("--limit", type=float, default=60, help="seconds that one script may take")
    parser.add_argument(
        "--deadline", type=float, default=1e9, help="starts none after this many seconds"
    )
    parser.add_argument("--repeat", type=int, default=1, help="times that each script is run")
    parser.add_argument(
        "--keep", action="store_true", help="keep what --out has about other scripts"
    )
    parser.add_argument(
        "--events", type=Path, help="write the allocator's history of first runs to this .json.gz"
    )
    arguments = parser.parse_args(words)

    chosen = chosen_scripts(read_manifest(), arguments.only)
    results: dict[str, Any] = {}
    if arguments.keep and arguments.out.exists():
        results = json.loads(arguments.out.read_text())["scripts"]
    events: dict[str, Any] = {}
    began = time.monotonic()

    def run(script: Script) -> tuple[str, list[dict[str, Any]]]:
        runs: list[dict[str, Any]] = []
        for _ in range(arguments.repeat):
            if time.monotonic() - began > arguments.deadline:
                break
            prefix = _prefix(script, arguments.python, arguments.virtual)
            runs.append(
                run_script(
                    script,
                    arguments.bundle,
                    prefix,
                    arguments.limit,
                    with_events=arguments.events is not None and not runs,
                )
            )
            say(f"{script.name}: {runs[-1]['outcome']} in {runs[-1]['seconds']} s")
        return script.name, runs

    head = {"card": _card(arguments.virtual), **versions(arguments.python)}
    with ThreadPoolExecutor(arguments.jobs) as pool:
        # Written after each script, so that a run which is cut off leaves what it has.
        for name, runs in pool.map(run, chosen):
            if runs:
                events[name] = [process.pop("events", []) for process in runs[0]["processes"]]
                results[name] = summarise(runs)
                arguments.out.write_text(
                    json.dumps({**head, "scripts": dict(sorted(results.items()))}, indent=1) + "\n"
                )
    if arguments.events is not None:
        arguments.events.write_bytes(gzip.compress(json.dumps(events).encode(), mtime=0))
    return 0


def summarise(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The first run, and whether the others were like it."""
    first = dict(runs[0])
    if len(runs) > 1:
        first["other_runs"] = [
            {"outcome": run["outcome"], "processes": run["processes"]} for run in runs[1:]
        ]
    return first


def _prefix(script: Script, python: str, virtual: str | None) -> list[str]:
    if virtual is None:
        return [python]
    command = os.environ.get("GHOSTGPU_COMMAND", "ghostgpu")
    options = ["--gpu", virtual, "--full", "--no-retry", "--no-breakdown", "--python", python]
    return [command, "run", *options, *([] if not script.launcher else ["--", python])]


def _card(virtual: str | None) -> str:
    if virtual is not None:
        return f"virtual {virtual}"
    try:
        asked = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
        return subprocess.run(asked, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
