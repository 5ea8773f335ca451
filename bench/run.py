"""What a rehearsal costs, each number next to its baseline from the same benchmark run.

    make bench

* start: `ghostgpu run` of a whole job, relative to the parts of it that cannot be avoided
  (interpreter, `import torch`, importing and building the model). Measured in turn; medians.
* breakdown: the same run, relative to one with `--no-breakdown`.
* step: a training step on the virtual H200 with `--no-breakdown`, compared with one recorded on a
  real H200. Limits apply to the batches of the models' papers; the other jobs show where the card
  waits for the host, which has as much work with a virtual card.
* host memory: the highest peak of any process of a rehearsal.
* estimate: a decoder of seven billion parameters by its name, from start to end.
* first run: a rehearsal without cached answers of cuDNN, relative to the same one with them. With
  `cudnn.benchmark`, PyTorch asks about every engine of every layer: thousands of questions.
* max-batch: the largest batch of BERT-base on a card of 11 GiB, found and confirmed by a run.
* plan: tricks that make BERT-base, GPT-2 and ResNet-50 fit a card of 11 GiB, and how many
  combinations were rehearsed to find them.
* cards: every card of the catalogue for BERT-base.
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

ROUNDS = 3
START_LIMIT = 1.3
BREAKDOWN_LIMIT = 1.3
PLAIN = ("--no-breakdown",)
BERT, RESNET, LLAMA = "bert-base 32x512", "resnet50 256", "llama-7b 1x512"
STEP_LIMIT = 5.0
JUDGED_STEPS = (BERT, RESNET)
TIMED_STEPS = "30"
MEMORY_LIMITS_GIB = {LLAMA: 6.0, BERT: 1.5}
ESTIMATES = (
    ("llama-2-7b", "--dtype", "pure-bf16", "--batch", "1", "--seq", "2048"),
    ("llama-2-7b", "--dtype", "pure-bf16", "--batch", "4", "--seq", "2048", "--lora", "16"),
)
ESTIMATE_LIMIT_S, ESTIMATE_LIMIT_GIB = 15.0, 6.0
MAX_BATCH_LIMIT_S = 30.0
PLANNED = ("bert-base", "gpt2", "resnet50")
PLAN_LIMIT_S, PLAN_CANDIDATES = 60.0, 24
CARDS_LIMIT_S = 60.0
FIRST_RUNS = (
    ("resnet50",),
    ("convnext_tiny",),
    ("resnet50", "--search"),
    ("mobilenet_v3_large", "--search"),
    ("efficientnet_b0", "--search"),
    ("densenet121", "--search"),
)
FIRST_RUN_LIMIT = 2.0


@dataclass
class Run:
    """One process that has ended."""

    seconds: float
    peak_bytes: int
    stdout: str


def run(words: list[str], **variables: str) -> Run:
    """Run a command to its end, with these variables set.

    If it fails, the benchmark ends with the command's output.
    """
    with tempfile.TemporaryFile("w+") as stdout, tempfile.TemporaryFile("w+") as stderr:
        begin = time.perf_counter()
        environment = {**os.environ, **variables}
        child = subprocess.Popen(
            words, stdout=stdout, stderr=stderr, cwd=REPOSITORY, env=environment
        )
        # Unlike `wait`, this reports the peak of the process and of all that it waited for.
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


def compare_start(job: str) -> bool:
    bare_words = [sys.executable, str(BENCH / "job.py"), job, "--build-only"]
    # Warm up both, so that neither reads from a cold disk or queries cuDNN for the first time.
    run(bare_words)
    run(rehearsal("job.py", job))
    bare, plain, ghost = [], [], []
    for _ in range(ROUNDS):
        bare.append(run(bare_words).seconds)
        plain.append(run(rehearsal("job.py", job, options=PLAIN)).seconds)
        ghost.append(run(rehearsal("job.py", job)).seconds)
    bare_s, plain_s, ghost_s = (statistics.median(each) for each in (bare, plain, ghost))
    ratio, added = ghost_s / bare_s, ghost_s / plain_s
    show(
        f"start       {job:<22} bare parts {bare_s:6.2f} s   ghostgpu run {ghost_s:6.2f} s"
        f"   ratio {ratio:5.2f}   (at most {START_LIMIT})",
        ratio <= START_LIMIT,
    )
    show(
        f"breakdown   {job:<22} without    {plain_s:6.2f} s   with         {ghost_s:6.2f} s"
        f"   ratio {added:5.2f}   (at most {BREAKDOWN_LIMIT})",
        added <= BREAKDOWN_LIMIT,
    )
    return ratio <= START_LIMIT and added <= BREAKDOWN_LIMIT


def compare_steps() -> bool:
    recording = json.loads(RECORDED_STEPS.read_text())
    jobs: dict[str, dict[str, float]] = recording["jobs"]
    options = ("--steps", "0", *PLAIN)
    words = rehearsal("step_times.py", "--jobs", *jobs, "--steps", TIMED_STEPS, options=options)
    done = run(words)
    virtual, _ = json.JSONDecoder().raw_decode(done.stdout[done.stdout.index("{") :])
    good = True
    for job, times in jobs.items():
        real_ms, virtual_ms = times["median_ms"], virtual["jobs"][job]["median_ms"]
        ratio = real_ms / virtual_ms
        is_judged = job in JUDGED_STEPS
        is_good = ratio >= STEP_LIMIT
        wanted = f"   (at least {STEP_LIMIT:g})" if is_judged else ""
        show(
            f"step        {job:<22} {recording['device']} {real_ms:7.2f} ms   virtual"
            f" {virtual_ms:7.2f} ms   ratio {ratio:5.2f}{wanted}",
            is_good if is_judged else None,
        )
        good = good and (is_good or not is_judged)
    for job in JUDGED_STEPS:
        if job not in jobs:
            show(f"step        {job:<22} was not recorded on a real card", False)
            good = False
    return good


def measure_memory(job: str) -> bool:
    limit = MEMORY_LIMITS_GIB[job]
    done = run(rehearsal("job.py", job))
    peak = done.peak_bytes / (1 << 30)
    show(
        f"host memory {job:<22} {peak:5.2f} GiB   in {done.seconds:.1f} s   (under {limit:g} GiB)",
        peak < limit,
    )
    return peak < limit


def measure_estimate(words: tuple[str, ...]) -> bool:
    done = run([PROGRAM, "estimate", *words, "--gpu", "h200", "--python", sys.executable])
    peak = done.peak_bytes / (1 << 30)
    is_good = done.seconds < ESTIMATE_LIMIT_S and peak < ESTIMATE_LIMIT_GIB
    show(
        f"estimate    {' '.join(words)}   {done.seconds:.1f} s   {peak:.2f} GiB"
        f"   (under {ESTIMATE_LIMIT_S:g} s and {ESTIMATE_LIMIT_GIB:g} GiB)",
        is_good,
    )
    return is_good


def measure_first_run(words: tuple[str, ...]) -> bool:
    command = rehearsal("train_vision.py", *words, options=PLAIN)
    first, later = [], []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as cache:
            first.append(run(command, XDG_CACHE_HOME=cache).seconds)
            later.append(run(command, XDG_CACHE_HOME=cache).seconds)
    first_s, later_s = statistics.median(first), statistics.median(later)
    ratio = first_s / later_s
    show(
        f"first run   {' '.join(words):<29} later      {later_s:6.2f} s   first {first_s:6.2f} s"
        f"   ratio {ratio:5.2f}   (at most {FIRST_RUN_LIMIT})",
        ratio <= FIRST_RUN_LIMIT,
    )
    return ratio <= FIRST_RUN_LIMIT


def measure_max_batch() -> bool:
    options = ["--gpu", "h200", "--memory", "11GiB", "--json", "-", "--python", sys.executable]
    done = run([PROGRAM, "max-batch", *options, str(BENCH / "train_bert.py")])
    answer = json.loads(done.stdout)
    largest, rehearsed = answer["largest_batch"], answer["rehearsed"]
    fits = {each["batch"]: each["fits"] for each in rehearsed}
    is_exact = answer["confirmation"] == "equal" and fits[largest] and fits[largest + 1] is False
    is_good = is_exact and done.seconds < MAX_BATCH_LIMIT_S
    show(
        f"max-batch   bert-base 128 tokens, 11 GiB   {largest} in {done.seconds:.1f} s,"
        f" {len(rehearsed)} batches rehearsed   (under {MAX_BATCH_LIMIT_S:g} s, confirmed)",
        is_good,
    )
    return is_good


def measure_plan(model: str) -> bool:
    options = ["--gpu", "2080ti", "--fresh", "--json", "-", "--python", sys.executable]
    done = run([PROGRAM, "plan", *options, str(BENCH / "train_and_evaluate.py"), model])
    answer = json.loads(done.stdout)
    best = answer["candidates"][answer["recommended"]]
    combinations = len(answer["candidates"])
    # A job may have too few combinations that could be better than the plan.
    is_enough = combinations >= PLAN_CANDIDATES or answer["stopped"] == "nothing-left"
    is_good = done.seconds < PLAN_LIMIT_S and is_enough
    show(
        f"plan        {model:<22} {done.seconds:5.1f} s   {combinations} combinations in"
        f" {answer['rehearsals']} rehearsals: {best['in_words']}"
        f"   (under {PLAN_LIMIT_S:g} s, at least {PLAN_CANDIDATES} or all there are)",
        is_good,
    )
    return is_good


def measure_cards() -> bool:
    options = ["--json", "-", "--python", sys.executable]
    done = run([PROGRAM, "cards", *options, str(BENCH / "train_and_evaluate.py"), "bert-base"])
    answer = json.loads(done.stdout)
    is_good = done.seconds < CARDS_LIMIT_S
    show(
        f"cards       bert-base              {done.seconds:5.1f} s   {len(answer['cards'])} cards"
        f"   (under {CARDS_LIMIT_S:g} s)",
        is_good,
    )
    return is_good


def show(line: str, is_good: bool | None) -> None:
    """Print a result; `is_good` is None if it has no limit."""
    mark = {True: "ok  ", False: "MISS", None: "    "}[is_good]
    print(f"{mark} {line}", flush=True)


def describe_machine() -> str:
    models = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    return f"on {len(models)} x {models[0] if models else 'unknown'}, load {os.getloadavg()[0]:.1f}"


def main() -> None:
    # Other load on the same cores affects all times below except the recorded ones.
    show(describe_machine(), None)
    results = [compare_start(job) for job in (BERT, RESNET)]
    results.append(compare_steps())
    results += [measure_memory(job) for job in MEMORY_LIMITS_GIB]
    results += [measure_estimate(words) for words in ESTIMATES]
    results += [measure_first_run(words) for words in FIRST_RUNS]
    results.append(measure_max_batch())
    results += [measure_plan(model) for model in PLANNED]
    results.append(measure_cards())
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
