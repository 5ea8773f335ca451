"""Measures trainings of several ranks on one real card, or on virtual cards, and compares the two.

    python measure_ranks.py real OUT.jsonl [CASE ...]
    python measure_ranks.py virtual OUT.jsonl [CASE ...] --ghostgpu PROGRAM
    python measure_ranks.py compare REAL.jsonl VIRTUAL.jsonl

With `--history FOLDER` every rank also leaves its memory history there, with Python's stacks.

NCCL refuses two ranks on one card of one host. Here each rank says that it is a host of its own
(`NCCL_HOSTID`), so that several share the one card and talk through sockets; what each rank's
allocator does is what it does on a card of its own. With `--own-cards` each has one, as on virtual
cards: those are measured by rehearsing this program. Each run of a case is one line of JSON,
written when it has ended: a measurement that was stopped goes on with what is missing. Ranks are
forked from a process that has imported PyTorch and not touched the card; `--fresh` starts each on
its own.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TRAIN = Path(__file__).with_name("train.py")

TIMEOUT_S = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=("real", "virtual", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("rest", nargs="*", help="cases, or the file to compare with")
    parser.add_argument("--ghostgpu", default="ghostgpu")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--gpu", default="h200")
    parser.add_argument("--history", type=Path, help="a folder for histories of every rank")
    parser.add_argument("--repeat", type=int, default=1, help="how often each case is measured")
    parser.add_argument("--ranks-at-once", type=int, default=16, help="of several cases")
    parser.add_argument("--own-cards", action="store_true", help="a card for each rank of a case")
    parser.add_argument("--deadline", type=float, default=1e9, help="seconds; no case starts later")
    parser.add_argument("--fresh", action="store_true", help="fork nothing")
    parser.add_argument("--train", type=Path, default=TRAIN, help="what every rank runs")
    arguments = parser.parse_args()
    if arguments.action == "compare":
        compare(read(arguments.file), read(Path(arguments.rest[0])))
        return
    if arguments.history is not None:
        arguments.history.mkdir(parents=True, exist_ok=True)
        os.environ["RANKS_HISTORY"] = str(arguments.history.absolute())
    done = read(arguments.file)
    names = arguments.rest or known_cases(arguments.python)
    runs = [
        Run(case, number)
        for number in range(arguments.repeat)
        for case in names
        if number >= len(done.get(case, []))
    ]
    measure = measure_real if arguments.action == "real" else measure_virtual
    sys.exit(1 if runs and measure(arguments, runs) else 0)


def known_cases(python: str) -> list[str]:
    """The names that `train.py` knows, without torch in this process."""
    question = "import json, train; print(json.dumps(list(train.CASES)))"
    words = [python, "-c", question]
    said = subprocess.run(words, cwd=TRAIN.parent, capture_output=True, text=True, check=True)
    names: list[str] = json.loads(said.stdout)
    return names


def ranks_of(case: str) -> int:
    """How many ranks a case has: two, unless its name says four."""
    return 4 if case.endswith("-4") or case == "hsdp" else 2


def read(path: Path) -> dict[str, list[Any]]:
    """What a file has, by case; a run that failed is measured again."""
    runs: dict[str, list[Any]] = {}
    for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        line = json.loads(text)
        if not line["problem"]:
            runs.setdefault(line["case"], []).append(line)
    return runs


def write(path: Path, case: str, figures: list[Any], problem: str | None) -> bool:
    """Adds one run to the file; says whether it failed."""
    if problem is None and len(figures) != ranks_of(case):
        problem = "not every rank printed its figures"
    line = {"case": case, "ranks": ranks_of(case), "figures": figures, "problem": problem}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    print(json.dumps(line), flush=True)
    return problem is not None


@dataclass
class Run:
    """One run of a case."""

    case: str
    number: int
    processes: dict[int, Any] = field(default_factory=dict)
    output: Path = Path()
    started: float = 0.0
    codes: list[int] = field(default_factory=list)

    def start(self, arguments: Any, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.output, self.started = folder / f"{self.case}-{self.number}", time.monotonic()
        for rank in range(ranks_of(self.case)):
            environment = {
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
                "WORLD_SIZE": str(ranks_of(self.case)),
                "RANK": str(rank),
                **(on_own_card(self.case, rank) if arguments.own_cards else on_shared_card(rank)),
            }
            if self.number:
                environment["RANKS_HISTORY"] = ""
            words = [arguments.python, str(arguments.train), self.case]
            start = fresh_rank if arguments.fresh else forked_rank
            self.processes[start(words, environment, self.output)] = rank

    def has_ended(self) -> bool:
        """Looks at every process once; ends them all when their time is over."""
        for process in list(self.processes):
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                del self.processes[process]
                self.codes.append(os.waitstatus_to_exitcode(status))
        if time.monotonic() - self.started > TIMEOUT_S:
            for process in self.processes:
                os.kill(process, 9)
        return not self.processes

    def result(self) -> tuple[list[Any], str | None]:
        text = self.output.read_text(encoding="utf-8", errors="replace")
        return figures_in(text), text[-1500:] if any(self.codes) else None


def on_own_card(case: str, rank: int) -> dict[str, str]:
    ranks = str(ranks_of(case))
    return {"LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": ranks, "GROUP_RANK": "0"}


def on_shared_card(rank: int) -> dict[str, str]:
    return {
        "LOCAL_RANK": "0",
        "GROUP_RANK": str(rank),
        "RANKS_SHARE_CARD": "1",
        "NCCL_HOSTID": f"host-{rank}",
        "NCCL_SOCKET_IFNAME": "lo",
        "NCCL_IB_DISABLE": "1",
    }


def fresh_rank(words: list[str], environment: dict[str, str], output: Path) -> int:
    with output.open("a") as file:
        started = subprocess.Popen(
            words, env={**os.environ, **environment}, stdout=file, stderr=subprocess.STDOUT
        )
    return started.pid


def forked_rank(words: list[str], environment: dict[str, str], output: Path) -> int:
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(file, 1)
        os.dup2(file, 2)
        os.environ.update(environment)
        sys.argv = words[1:]
        runpy.run_path(words[1], run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        import traceback

        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(code)


def measure_real(arguments: Any, runs: list[Run]) -> bool:
    """Ranks as processes that share one real card, several cases at a time."""
    if not arguments.fresh:
        # What modules ask about cards while they are imported must not open a context here.
        os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
        sys.path.insert(0, str(TRAIN.parent))
        import torch.distributed.checkpoint.state_dict
        import torch.distributed.fsdp
        import torch.distributed.pipelining
        import torch.distributed.tensor.experimental
        import torch.distributed.tensor.parallel  # noqa: F401
        import train  # noqa: F401
    begun, has_failed = time.monotonic(), False
    running: list[Run] = []
    with tempfile.TemporaryDirectory() as folder:
        while runs or running:
            if time.monotonic() - begun > arguments.deadline:
                runs = []
            busy = sum(ranks_of(run.case) for run in running)
            if runs and busy + ranks_of(runs[0].case) <= arguments.ranks_at_once:
                running.append(runs.pop(0))
                running[-1].start(arguments, Path(folder))
                continue
            for run in [run for run in running if run.has_ended()]:
                running.remove(run)
                has_failed |= write(arguments.file, run.case, *run.result())
            time.sleep(0.05)
    return has_failed


def measure_virtual(arguments: Any, runs: list[Run]) -> bool:
    """The same on virtual cards: one rehearsal of this program for all cases, one at a time."""
    cards = str(max(ranks_of(run.case) for run in runs))
    words = [arguments.ghostgpu, "run", "--gpu", arguments.gpu, "--count", cards, "--full"]
    words += ["--no-retry", "--no-breakdown", "--timeout", "2h", "--python", arguments.python]
    # A history that PyTorch dumps is a file like a checkpoint.
    words += ["--keep-checkpoints"] if arguments.history is not None else []
    words += ["--", arguments.python, __file__, "real", str(arguments.file.absolute())]
    words += list(dict.fromkeys(run.case for run in runs))
    words += ["--own-cards", "--ranks-at-once", "4", "--repeat", str(arguments.repeat)]
    words += ["--train", str(arguments.train.absolute())]
    # What the rehearsal as a whole came to says nothing: some cases run out of memory on purpose.
    subprocess.run(words, stderr=subprocess.DEVNULL, check=False)
    done = read(arguments.file)
    return any(run.number >= len(done.get(run.case, [])) for run in runs)


def figures_in(output: str) -> list[Any]:
    """What the ranks printed, in their order; two may have come to stand on one line."""
    decoder = json.JSONDecoder()
    found = [decoder.raw_decode(part)[0] for part in output.split("figures ")[1:]]
    return sorted(found, key=lambda rank: int(rank["rank"]))


def compare(real: dict[str, list[Any]], virtual: dict[str, list[Any]]) -> None:
    """One line for each case: equal, or by how much each rank differs from what it showed."""
    for case in sorted(real.keys() & virtual.keys()):
        ranks = range(ranks_of(case))
        seen = [set(peaks_seen(real[case], case, rank)) for rank in ranks]
        here = [peaks(virtual[case][-1], rank) for rank in ranks]
        line = {
            "case": case,
            "equal": all(mine in theirs for mine, theirs in zip(here, seen)),
            "repeats": all(len(theirs) == 1 for theirs in seen),
            "same_requests": all(
                virtual[case][-1]["figures"][rank]["requests"] in requests(real[case], rank)
                for rank in ranks
            ),
            "virtual_minus_real": [
                sorted((mine[0] - each[0], mine[1] - each[1]) for each in theirs)
                for mine, theirs in zip(here, seen)
            ],
        }
        print(json.dumps(line))


def requests(runs: list[Any], rank: int) -> set[str]:
    """The digests of what a rank asked its allocator for, of those runs that recorded it."""
    found = (run["figures"][rank].get("requests") for run in runs)
    return {digest for digest in found if digest is not None}


def peaks_seen(runs: list[Any], case: str, rank: int) -> list[tuple[int, int]]:
    """What a rank showed; with plain data parallelism also what the others did, which are alike."""
    are_alike = case.startswith("ddp") and case != "ddp-join"
    ranks = range(ranks_of(case)) if are_alike else (rank,)
    return [peaks(run, each) for run in runs for each in ranks]


def peaks(run: Any, rank: int) -> tuple[int, int]:
    """Peak allocated and peak reserved of one rank."""
    figures = run["figures"][rank]
    return figures["allocated"], figures["reserved"]


if __name__ == "__main__":
    main()
