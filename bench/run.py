"""What a rehearsal costs, each number beside what it is measured against, in one run.

    make bench

* start: `ghostgpu run` of a whole job, over the parts of it that cannot be avoided (interpreter,
  `import torch`, importing and building the model). Both take turns; medians.
* step: a training step on the virtual H200, against one recorded on a real H200.
* host memory: the most that any process of a rehearsal had in memory.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
BENCH = REPOSITORY / "bench"
PROGRAM = os.environ.get("GHOSTGPU_COMMAND") or str(REPOSITORY / "target/release/ghostgpu")
RECORDED_STEPS = REPOSITORY / "ground_truth" / "h200" / "step_times.json"

ROUNDS = 5
START_LIMIT = 1.3
STEP_LIMIT = 5.0
MEMORY_LIMITS_GIB = {"llama-7b": 6.0, "bert-base": 1.5}


@dataclass
class Run:
    """One process that is over."""

    seconds: float
    peak_bytes: int
    stdout: str


def run(words: list[str]) -> Run:
    """Run a command to its end; a failure ends the benchmark with what the command said."""
    with tempfile.TemporaryFile("w+") as stdout, tempfile.TemporaryFile("w+") as stderr:
        begin = time.perf_counter()
        child = subprocess.Popen(words, stdout=stdout, stderr=stderr, cwd=REPOSITORY)
        # Unlike `wait`, this tells the peak of the process and of all that it waited for.
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - begin
        child.returncode = os.waitstatus_to_exitcode(status)
        stdout.seek(0)
        if child.returncode != 0:
            stderr.seek(0)
            sys.exit(f"error: {' '.join(words)}\n{stdout.read()}{stderr.read()}")
        return Run(seconds, usage.ru_maxrss * 1024, stdout.read())


def rehearsal(script: str, *arguments: str, options: tuple[str, ...] = ()) -> list[str]:
    command = [PROGRAM, "run", "--gpu", "h200", "--python", sys.executable, *options]
    return [*command, str(BENCH / script), *arguments]


def compare_start(model: str) -> bool:
    bare_words = [sys.executable, str(BENCH / "job.py"), model, "--build-only"]
    # Once each beforehand, so that neither reads from a cold disk or asks cuDNN for the first time.
    run(bare_words)
    run(rehearsal("job.py", model))
    bare, ghost = [], []
    for _ in range(ROUNDS):
        bare.append(run(bare_words).seconds)
        ghost.append(run(rehearsal("job.py", model)).seconds)
    bare_s, ghost_s = statistics.median(bare), statistics.median(ghost)
    ratio = ghost_s / bare_s
    show(
        f"start       {model:<10} bare parts {bare_s:6.2f} s   ghostgpu run {ghost_s:6.2f} s"
        f"   ratio {ratio:5.2f}   (at most {START_LIMIT})",
        ratio <= START_LIMIT,
    )
    return ratio <= START_LIMIT


def compare_steps() -> bool:
    if not RECORDED_STEPS.exists():
        show("step        no recording of a real card to compare with", False)
        return False
    real = json.loads(RECORDED_STEPS.read_text())
    done = run(rehearsal("step_times.py", options=("--steps", "0")))
    virtual, _ = json.JSONDecoder().raw_decode(done.stdout[done.stdout.index("{") :])
    good = True
    for model, times in real["models"].items():
        if times.get("job") != virtual["models"][model]["job"]:
            show(f"step        {model:<10} another job was recorded: record it again", False)
            good = False
            continue
        real_ms, virtual_ms = times["median_ms"], virtual["models"][model]["median_ms"]
        ratio = real_ms / virtual_ms
        show(
            f"step        {model:<10} {real['device']} {real_ms:7.2f} ms   virtual"
            f" {virtual_ms:7.2f} ms   {ratio:5.1f} times faster   (at least {STEP_LIMIT})",
            ratio >= STEP_LIMIT,
        )
        good = good and ratio >= STEP_LIMIT
    return good


def measure_memory(model: str) -> bool:
    limit = MEMORY_LIMITS_GIB[model]
    done = run(rehearsal("job.py", model))
    peak = done.peak_bytes / (1 << 30)
    show(
        f"host memory {model:<10} {peak:5.2f} GiB   in {done.seconds:.1f} s   (under {limit} GiB)",
        peak < limit,
    )
    return peak < limit


def show(line: str, is_good: bool) -> None:
    print(f"{'ok  ' if is_good else 'MISS'} {line}", flush=True)


def main() -> None:
    results = [compare_start(model) for model in ("bert-base", "resnet50")]
    results.append(compare_steps())
    results += [measure_memory(model) for model in MEMORY_LIMITS_GIB]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
