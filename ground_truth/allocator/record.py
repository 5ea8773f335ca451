"""Records histories and figures of PyTorch's allocator on a real card.

    python ground_truth/allocator/record.py --out FOLDER --jobs 10

Leaves for every recording of `recordings.py` a `NAME.json` (the command, versions, how it ended,
and all of `memory_stats` after every step and at the end) and, where the history is kept,
`NAME.pickle.gz`: PyTorch's own snapshot, recorded from before the first allocation on. Each step
ends with a call that leaves a `snapshot` entry in the history, so that the statistics belong to a
known place in it.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import gzip
import json
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, List

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "harness")]

from recordings import Recording, recordings, settings_text  # noqa: E402

SETTINGS_VARIABLE = "PYTORCH_CUDA_ALLOC_CONF"


def run_one(recording: Recording, folder: Path) -> int:
    import torch

    torch.manual_seed(0)
    marks: List[Dict[str, Any]] = []

    def start() -> None:
        torch.cuda.init()
        if recording.cap_gib is not None:
            total = torch.cuda.get_device_properties(0).total_memory
            torch.cuda.set_per_process_memory_fraction(recording.cap_gib * 2**30 / total)
        torch.cuda.memory._record_memory_history(
            "all", context="alloc" if recording.with_stacks else None, stacks="python"
        )
        gc.collect()
        gc.disable()

    def mark() -> None:
        gc.collect()
        marks.append(dict(torch.cuda.memory_stats()))
        torch.cuda.memory._snapshot()

    outcome, text = "finished", None
    began = time.monotonic()
    try:
        run_job(recording, start, mark)
    except torch.OutOfMemoryError as error:
        outcome, text = "oom", str(error)
        error.__traceback__ = None
    gc.collect()
    final = dict(torch.cuda.memory_stats())
    snapshot = torch.cuda.memory._snapshot()
    leave_folders_out(snapshot)
    result = {
        "name": recording.name,
        "job": recording.job,
        "settings": settings_text(recording.setting),
        "cap_gib": recording.cap_gib,
        "command": "python ground_truth/allocator/record.py",
        "outcome": outcome,
        "oom": text,
        # Of each statistic, its values after every step and at the end.
        "statistics": columns([*(marks if recording.with_history else []), final]),
        "events": len(snapshot["device_traces"][0]),
        "seconds": round(time.monotonic() - began, 1),
        "environment": facts(),
    }
    folder.mkdir(parents=True, exist_ok=True)
    if recording.with_history:
        # No time stamp and no name inside, so that equal histories are equal files.
        path = folder / f"{recording.name}.pickle.gz"
        with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, 0) as packed:
            pickle.dump(snapshot, packed)
    lines = (f" {json.dumps(name)}: {json.dumps(value)}" for name, value in result.items())
    (folder / f"{recording.name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    return 0


def leave_folders_out(snapshot: Dict[str, Any]) -> None:
    """Name files as in the project, or in their package: not as on this machine."""
    blocks = [block for segment in snapshot["segments"] for block in segment["blocks"]]
    entries = [entry for trace in snapshot["device_traces"] for entry in trace]
    for holder in (*snapshot["segments"], *blocks, *entries):
        for frame in holder.get("frames", ()):
            name = frame["filename"].replace(f"{HERE.parents[1]}/", "")
            if "site-packages/" in name:
                name = "site-packages/" + name.split("site-packages/")[-1]
            elif "/lib/python" in name:
                name = "lib/python" + name.split("/lib/python")[-1]
            frame["filename"] = name


def columns(readings: List[Dict[str, Any]]) -> Dict[str, List[Any]]:
    names = sorted({name for reading in readings for name in reading})
    return {name: [reading.get(name) for reading in readings] for name in names}


def run_job(recording: Recording, start: Any, mark: Any) -> None:
    import scripts

    if recording.job in scripts.SCRIPTS:
        start()
        scripts.SCRIPTS[recording.job](mark)
        return
    import cases  # noqa: F401
    from case import CASES
    from context import Context
    from training import train

    case = CASES[recording.job]
    context = Context(case, on_start=start, on_step=mark)
    (case.script or train)(context)


def facts() -> Dict[str, Any]:
    from run_case import environment_facts

    return environment_facts(on_card=True)


def run_all(options: argparse.Namespace) -> int:
    waiting = [r for r in recordings() if not options.only or options.only in r.name]
    running: List[Any] = []
    failed = 0
    while waiting or running:
        for entry in list(running):
            recording, process = entry
            if process.poll() is None:
                continue
            running.remove(entry)
            failed += process.returncode != 0
            print(f"{process.returncode:3}  {recording.name}", flush=True)
        while waiting and len(running) < options.jobs:
            recording = waiting.pop(0)
            log = options.out / "logs" / f"{recording.name}.log"
            log.parent.mkdir(parents=True, exist_ok=True)
            environment = {**os.environ, SETTINGS_VARIABLE: settings_text(recording.setting)}
            command = [sys.executable, __file__, "--out", str(options.out), "--one", recording.name]
            with open(log, "wb") as output:
                process = subprocess.Popen(
                    command, env=environment, stdout=output, stderr=subprocess.STDOUT
                )
            running.append((recording, process))
        time.sleep(0.1)
    return 1 if failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--only", help="a part of the names to record")
    parser.add_argument("--one", help="record this one in this process")
    options = parser.parse_args()
    if options.one:
        chosen = next(r for r in recordings() if r.name == options.one)
        return run_one(chosen, options.out)
    with contextlib.suppress(KeyboardInterrupt):
        return run_all(options)
    return 130


if __name__ == "__main__":
    sys.exit(main())
