"""Runs PyTorch's own test files on virtual cards, and says how each of their tests ended.

The files of the release that is installed are brought from PyTorch's repository (see README.md);
none of them is part of this project.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import tomllib

HERE = Path(__file__).resolve().parent
WORKER = HERE / "worker.py"

#: What a test may take, and what all tests of a suite may take together.
TEST_SECONDS = 300
SUITE_MINUTES = 60


@dataclass(frozen=True)
class Suite:
    """One of PyTorch's test files, and what it runs on."""

    name: str
    file: str
    cards: int = 1
    expandable: bool = False
    ranks: bool = False
    classes: tuple[str, ...] = ()


def suites() -> dict[str, Suite]:
    with (HERE / "suites.toml").open("rb") as file:
        return {name: Suite(name, **fields) for name, fields in tomllib.load(file).items()}


@dataclass(frozen=True)
class Ended:
    """How one test ended: passed, failed, skipped, crashed or hung."""

    outcome: str
    why: str = ""


def run_suite(
    suite: Suite,
    source: Path,
    results: Path,
    *,
    python: str,
    packages: Path,
    only: tuple[str, ...] = (),
) -> dict[str, Ended]:
    """Every test of a suite, in as few processes as it takes.

    A process that ends in the middle of a test is followed by another, which goes on behind it.
    """
    while True:
        ended, unfinished = read_results(results)
        if unfinished:
            ended[unfinished] = write_unfinished(results, unfinished)
        left = tuple(name for name in only if name not in ended)
        if only and not left:
            return ended
        before = len(ended)
        command = worker_command(suite, source, results, python, left, tuple(ended))
        done = subprocess.run(
            command,
            cwd=(source / "test" / suite.file).parent,
            env=environment(packages, python),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=SUITE_MINUTES * 60,
            check=False,
        )
        ended, unfinished = read_results(results)
        if unfinished is None and (has_finished(results) or len(ended) == before):
            if not ended:
                raise RuntimeError(f"{suite.name}: no test was run\n{done.stdout[-3000:]}")
            return ended


def write_unfinished(results: Path, test: str) -> Ended:
    """Writes down how the test ended within which the process ended."""
    took = time.time() - results.stat().st_mtime
    ended = (
        Ended("hung", f"took more than {TEST_SECONDS} seconds")
        if took >= TEST_SECONDS
        else Ended("crashed", "the process ended")
    )
    with results.open("a", encoding="utf-8") as file:
        line = {"ended": test, "outcome": ended.outcome, "why": ended.why}
        file.write(json.dumps(line) + "\n")
    return ended


def run_alone(
    suite: Suite,
    source: Path,
    folder: Path,
    *,
    python: str,
    packages: Path,
    names: tuple[str, ...],
) -> dict[str, Ended]:
    """These tests of a suite, each in a process of its own."""
    ended: dict[str, Ended] = {}
    for number, name in enumerate(names):
        results = folder / f"alone-{number}.jsonl"
        ended |= run_suite(suite, source, results, python=python, packages=packages, only=(name,))
    return ended


def worker_command(
    suite: Suite,
    source: Path,
    results: Path,
    python: str,
    only: tuple[str, ...],
    unwanted: tuple[str, ...],
) -> list[str]:
    rehearsal = ["run", "--gpu", "h200", "--count", str(suite.cards), "--full", "--full-init"]
    rehearsal += ["--no-breakdown", "--no-retry", "--timeout", f"{SUITE_MINUTES}m", "-q"]
    worker = [str(WORKER), str(results), str(TEST_SECONDS), str(source / "test" / suite.file)]
    worker += ["--expandable"] if suite.expandable else []
    worker += ["--ranks"] if suite.ranks else []
    worker += ["--classes", *suite.classes] if suite.classes else []
    worker += ["--only", *only] if only else []
    worker += ["--except", *unwanted] if unwanted else []
    return [os.environ["GHOSTGPU_COMMAND"], *rehearsal, "--python", python, *worker]


def toolkit(packages: Path, python: str) -> Path:
    """A folder laid out like a CUDA toolkit, of the headers and libraries that came with torch.

    Tests compile extensions against it; its compiler for device code is missing.
    """
    (installed,) = Path(python).parents[1].glob("lib/python3*/site-packages/nvidia/cu1*")
    folder = packages / "toolkit"
    (folder / "lib64").mkdir(parents=True, exist_ok=True)
    for link, target in (
        (folder / "include", installed / "include"),
        *(
            (folder / "lib64" / library.name.partition(".so")[0], library)
            for library in (installed / "lib").glob("libcudart.so.*")
        ),
    ):
        link = link if link.suffix or link.name == "include" else link.with_suffix(".so")
        if not link.exists():
            link.symlink_to(target)
    return folder


def environment(packages: Path, python: str) -> dict[str, str]:
    given = os.environ.get("PYTHONPATH", "")
    path = os.pathsep.join(part for part in (str(packages), given) if part)
    tools = os.pathsep.join((str(packages / "bin"), os.environ["PATH"]))
    return {
        **os.environ,
        "PYTHONPATH": path,
        "PATH": tools,
        "CUDA_HOME": str(toolkit(packages, python)),
        # A test whose ranks wait for each other fails by itself, and the next one goes on.
        "DISTRIBUTED_TESTS_DEFAULT_TIMEOUT": str(TEST_SECONDS * 2 // 3),
    }


def read_results(results: Path) -> tuple[dict[str, Ended], str | None]:
    """What ended so far, and the test that began and did not."""
    ended: dict[str, Ended] = {}
    began: str | None = None
    for line in lines_of(results):
        if "began" in line:
            began = line["began"]
        elif "ended" in line:
            ended[line["ended"]] = Ended(line["outcome"], line.get("why", ""))
            began = None
    return ended, began


def has_finished(results: Path) -> bool:
    """Whether the last process came to the end of its tests."""
    lines = list(lines_of(results))
    return bool(lines) and "finished" in lines[-1]


def lines_of(results: Path) -> Iterator[dict[str, str]]:
    if results.exists():
        with results.open(encoding="utf-8") as file:
            yield from (json.loads(line) for line in file)


def main() -> int:
    """`suites.py SOURCE PACKAGES FOLDER SUITE...`: writes the results of each suite to FOLDER."""
    source, packages, folder, *names = sys.argv[1:]
    for name in names or suites():
        suite = suites()[name]
        results = Path(folder) / f"{name}.jsonl"
        ended = run_suite(
            suite, Path(source), results, python=sys.executable, packages=Path(packages)
        )
        counts: dict[str, int] = {}
        for one in ended.values():
            counts[one.outcome] = counts.get(one.outcome, 0) + 1
        print(name, counts, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
