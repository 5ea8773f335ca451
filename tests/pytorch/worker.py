"""Runs tests of one of PyTorch's test files with pytest, and writes down how each ended.

    worker.py RESULTS SECONDS FILE [--expandable] [--ranks] [--classes CLASS...]
              [--only TEST...] [--except TEST...]

A line is written before each test and after it. A test that ends the process, or takes longer than
it may, is the one whose beginning was written last.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from forked_ranks import fork_ranks


class Recorder:
    """Writes a line for every beginning and every end."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.results: Path = arguments.results
        self.seconds: float = arguments.seconds
        self.wanted = set(arguments.only)
        self.unwanted = set(arguments.unwanted)
        self.classes = set(arguments.classes)
        self.ended: dict[str, dict[str, str]] = {}

    def write(self, line: dict[str, str]) -> None:
        with self.results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [
            item
            for item in items
            if name_of(item.nodeid) not in self.unwanted
            and (not self.classes or name_of(item.nodeid).split("::")[0] in self.classes)
            and (not self.wanted or name_of(item.nodeid) in self.wanted)
        ]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.write({"began": name_of(nodeid)})
        faulthandler.dump_traceback_later(self.seconds, exit=True)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        known = self.ended.get(report.nodeid)
        if report.failed:
            text = str(report.longrepr)
            lines = [line[1:].strip() for line in text.splitlines() if line.startswith("E ")]
            why = " / ".join(lines) or text
            self.ended[report.nodeid] = {"outcome": "failed", "why": shortened(why)}
        elif report.skipped:
            self.ended[report.nodeid] = {"outcome": "skipped", "why": str(report.longrepr)[-300:]}
        elif known is None and report.when == "call":
            self.ended[report.nodeid] = {"outcome": "passed", "why": ""}

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        faulthandler.cancel_dump_traceback_later()
        ended = self.ended.pop(nodeid, {"outcome": "failed", "why": "no report"})
        self.write({"ended": name_of(nodeid), **ended})

    def pytest_sessionfinish(self) -> None:
        self.write({"finished": "every test that was asked for"})


def shortened(why: str) -> str:
    """The first and the last of a long reason: that of a rank is behind its traceback."""
    return why if len(why) <= 900 else f"{why[:300]} … {why[-600:]}"


def name_of(nodeid: str) -> str:
    """`TestCuda::test_x` of `some/path/test_cuda.py::TestCuda::test_x`."""
    return nodeid.split("::", 1)[-1]


def use_expandable_segments() -> None:
    """What `test_cuda_expandable_segments.py` does before it runs the tests."""
    import test_cuda  # type: ignore[import-not-found]
    import torch

    torch.cuda.memory._set_allocator_settings("expandable_segments:True")
    for name in ("TestCuda", "TestBlockStateAbsorption"):
        getattr(test_cuda, name).expandable_segments = lambda _: True


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("results", type=Path)
    parser.add_argument("seconds", type=float)
    parser.add_argument("file", type=Path)
    parser.add_argument("--expandable", action="store_true")
    parser.add_argument("--ranks", action="store_true")
    parser.add_argument("--classes", nargs="*", default=[])
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--except", nargs="*", default=[], dest="unwanted")
    arguments = parser.parse_args()
    sys.path.insert(0, str(arguments.file.parent))
    if arguments.expandable:
        use_expandable_segments()
    if arguments.ranks:
        fork_ranks(arguments.file)
    recorder = Recorder(arguments)
    # PyTorch's tests are unittest's, and warn a lot; neither belongs to what is written down here.
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--disable-warnings"]
    return int(
        pytest.main(
            [*options, "--rootdir", str(arguments.file.parent), str(arguments.file)], [recorder]
        )
    )


if __name__ == "__main__":
    sys.exit(main())
