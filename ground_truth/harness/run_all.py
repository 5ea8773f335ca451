"""Runs the cases, each in a fresh process, several at a time, and packs what they measured.

    python ground_truth/harness/run_all.py --out results --jobs 12 --deadline 420
    python ground_truth/harness/run_all.py --out virtual --jobs 2 \\
        --launcher "ghostgpu run --gpu h200 --steps 0 --"

Leaves `cases/NAME.json` and `events/NAME.json.gz` under the output folder, and all of it again
in one `results.json.gz`, which `unpack.py` takes apart.
"""

from __future__ import annotations

import argparse
import fnmatch
import functools
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Union

sys.path.insert(0, str(Path(__file__).resolve().parent))

import cases  # noqa: E402, F401
from archive import pack  # noqa: E402
from case import CASES, Case  # noqa: E402
from context import LOCK_VARIABLE
from forked import ForkedProcess, import_everything
from run_case import arguments as parse_case_arguments
from run_case import measure_and_write  # noqa: E402
from summary import table  # noqa: E402

HARNESS = Path(__file__).resolve().parent


#: Families that start processes of their own, which a forked parent's state would confuse.
STARTS_PROCESSES = ("compiled", "frameworks")

Process = Union[subprocess.Popen[bytes], ForkedProcess]


@dataclass
class Running:
    case: Case
    process: Process
    started: float
    log: Path


class Runner:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.began = time.monotonic()
        self.running: list[Running] = []
        self.skipped: list[str] = []
        self.finished = 0

    def run(self, chosen: list[Case], jobs: int) -> None:
        """Runs all of `chosen`, at most `jobs` at a time and within the card's memory."""
        waiting = sorted(chosen, key=lambda case: -case.rough_seconds)
        while waiting or self.running:
            self._reap()
            if waiting and self._out_of_time():
                self.skipped += [case.name for case in waiting]
                waiting = []
            while waiting and len(self.running) < jobs and (fit := self._fitting(waiting)):
                waiting.remove(fit)
                self.running.append(self._start(fit))
            time.sleep(0.05)

    def _out_of_time(self) -> bool:
        return time.monotonic() - self.began > self.options.deadline

    def _fitting(self, waiting: list[Case]) -> Case | None:
        used = sum(entry.case.rough_gib for entry in self.running)
        return next((c for c in waiting if used + c.rough_gib <= self.options.memory_gib), None)

    def _start(self, case: Case) -> Running:
        log = self.options.out / "logs" / f"{case.name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        arguments = self._arguments(case)
        process: Process
        if self.options.fork and not case.settings and case.family not in STARTS_PROCESSES:
            work = functools.partial(measure_and_write, parse_case_arguments(arguments))
            process = ForkedProcess(work, log)
        else:
            process = self._start_anew(case, arguments, log)
        return Running(case, process, time.monotonic(), log)

    def _arguments(self, case: Case) -> list[str]:
        """The arguments of `run_case.py`."""
        arguments = [case.name, "--out", str(self._result_path(case))]
        if self.options.device == "cuda":
            arguments += ["--events", str(self.options.out / "events" / f"{case.name}.json.gz")]
        arguments += ["--device", self.options.device]
        return arguments + (["--tiny"] if self.options.tiny else [])

    def _start_anew(self, case: Case, arguments: list[str], log: Path) -> Process:
        launcher = shlex.split(self.options.launcher)
        command = [*launcher, self.options.python, str(HARNESS / "run_case.py"), *arguments]
        environment = {**os.environ, **case.process_environment()}
        with open(log, "wb") as output:
            return subprocess.Popen(
                command, env=environment, stdout=output, stderr=subprocess.STDOUT
            )

    def _result_path(self, case: Case) -> Path:
        return Path(self.options.out) / "cases" / f"{case.name}.json"

    def _reap(self) -> None:
        for entry in list(self.running):
            if entry.process.poll() is None:
                if time.monotonic() - entry.started < self.options.case_limit:
                    continue
                entry.process.kill()
                entry.process.wait()
            self.running.remove(entry)
            self.finished += 1
            self._report(entry)

    def _report(self, entry: Running) -> None:
        """A line on what happened; a case that died without a word gets a result that says so."""
        path = self._result_path(entry.case)
        if not path.exists():
            tail = entry.log.read_text(errors="replace")[-3000:]
            write_failure(path, entry.case, f"ended with status {entry.process.returncode}\n{tail}")
        result = json.loads(path.read_text())
        seconds = time.monotonic() - entry.started
        print(
            f"{self.finished:4}  {seconds:6.1f} s  {result['outcome']:9} {entry.case.name}",
            flush=True,
        )


def write_failure(path: Path, case: Case, failure: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    result: dict[str, Any] = {
        "case": case.name,
        "family": case.family,
        "definition": case.definition(),
        "outcome": "failed",
        "oom": None,
        "failure": failure,
        "steps": [],
    }
    path.write_text(json.dumps(result, indent=1) + "\n")


def chosen_cases(patterns: list[str], *, from_file: Path | None) -> list[Case]:
    names = list(CASES)
    if from_file:
        names = [line.strip() for line in from_file.read_text().splitlines() if line.strip()]
    if patterns:
        names = [
            n for n in names if any(fnmatch.fnmatch(n, p) or CASES[n].family == p for p in patterns)
        ]
    return [CASES[name] for name in names]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", action="append", default=[], help="name pattern or family")
    parser.add_argument("--names", type=Path, help="file with one case name per line")
    parser.add_argument("--deadline", type=float, default=1e9, help="start nothing after (seconds)")
    parser.add_argument(
        "--case-limit", type=float, default=150.0, help="end a case after (seconds)"
    )
    parser.add_argument(
        "--memory-gib", type=float, default=120.0, help="of the card, for all at once"
    )
    parser.add_argument("--launcher", default="", help="command that comes before python")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--fork", action="store_true", help="import once and fork, where possible")
    parser.add_argument("--list", action="store_true", help="print the names and end")
    options = parser.parse_args()
    chosen = chosen_cases(options.only, from_file=options.names)
    if options.list:
        print("\n".join(case.name for case in chosen))
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    # One thread per process is enough; libraries would start one per core each. The models come
    # from configurations: nothing may look for the network.
    os.environ.update(TOKENIZERS_PARALLELISM="false", HF_HUB_OFFLINE="1")
    os.environ.setdefault("OMP_NUM_THREADS", "2")
    if options.fork:
        import_everything()
    runner = Runner(options)
    with tempfile.NamedTemporaryFile(suffix=".lock") as lock:
        os.environ[LOCK_VARIABLE] = lock.name
        # Those that share the card first; then those that want it alone, which import and build
        # their models side by side and take turns only on the card itself.
        runner.run([case for case in chosen if not case.alone], options.jobs)
        runner.run([case for case in chosen if case.alone], options.jobs)
    results = pack(options.out)
    (options.out / "summary.txt").write_text(table(results))
    print(table(results))
    if runner.skipped:
        print(
            f"{len(runner.skipped)} cases were not started: out of time: {' '.join(runner.skipped)}"
        )
    print(f"{time.monotonic() - runner.began:.0f} s in all")
    return 1 if any(result["outcome"] == "failed" for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
