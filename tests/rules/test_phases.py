"""`scripts/run-phases`: what is needed is waited for, what fails is seen, the rest still runs."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from scripts_as_modules import load

phases = load("run-phases")
MAKEFILE = Path(__file__).resolve().parents[2] / "Makefile"


@pytest.fixture
def make(tmp_path: Path) -> list[str]:
    """Stands in for make: a target that is called `bad…` fails."""
    program = tmp_path / "make"
    program.write_text("#!/bin/sh\necho made $1\ncase $1 in bad*) exit 1;; esac\n")
    program.chmod(0o755)
    return [str(program)]


def background(**commands: str) -> Any:
    known = {name: phases.Preparation(name, command) for name, command in commands.items()}
    return phases.Background(tuple((name,) for name in commands), known)


def test_a_phase_waits_for_what_it_needs(make: list[str], tmp_path: Path) -> None:
    brought = tmp_path / "brought"
    prepared = background(tool=f"sleep 0.3; touch '{brought}'")
    (ran,) = phases.run((phases.Phase("good", needs=("tool",)),), prepared, make)
    assert brought.exists()
    assert ran.outcome == "passed"
    assert ran.waited >= 0.2


def test_a_failed_phase_stops_only_those_that_need_what_it_builds(
    make: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    several = (phases.Phase("bad"), phases.Phase("later", after="bad"), phases.Phase("good"))
    ran = phases.run(several, background(), make)
    assert [it.outcome for it in ran] == ["FAILED", "not run: bad failed", "passed"]
    assert phases.closing_line(ran) == "1 passed, 2 failed"
    said = capfd.readouterr().out
    assert "made good" in said
    assert "made later" not in said


def test_what_cannot_be_prepared_fails_the_phase_and_shows_why(
    make: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    prepared = background(browser="echo no such package; exit 1")
    (ran,) = phases.run((phases.Phase("page", needs=("browser",)),), prepared, make)
    assert ran.outcome == "not run: no browser"
    assert "no such package" in capfd.readouterr().out


def test_the_table_has_every_phase_and_what_was_prepared_beside_them() -> None:
    tests = Counter(passed=9, failed=1)
    ran = [phases.Ran("build", "passed", 65.4), phases.Ran("page", "FAILED", 3.0, 12.0, tests)]
    prepared = phases.Prepared(seconds=130.0)
    prepared.done.set()
    assert phases.table(ran, {"newest": prepared}, 81.0).splitlines() == [
        "phase                          time   waited    tests",
        "build                          1:05                  ",
        "page                           0:03     0:12       10  FAILED",
        "in all                         1:21",
        "",
        "prepared in the background",
        "newest                         2:10",
    ]


def test_every_phase_is_a_target_and_every_need_is_prepared_for() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", MAKEFILE.read_text(), re.MULTILINE))
    prepared = {name for lane in phases.LANES for name in lane}
    assert {phase.target for phase in phases.PHASES} <= targets
    assert {need for phase in phases.PHASES for need in phase.needs} <= prepared
    assert prepared == set(phases.preparations(Path("cache"), ""))


def test_every_target_that_checks_or_tests_is_a_phase() -> None:
    checks = set(re.findall(r"^((?:lint|test)-[a-z0-9-]+):", MAKEFILE.read_text(), re.MULTILINE))
    not_checks = {"test-all", "lint-rules-page"}
    assert checks - not_checks <= {phase.target for phase in phases.PHASES}


def test_pythons_that_were_named_are_not_prepared() -> None:
    known = phases.preparations(Path("cache"), os.pathsep.join(["a", "b"]))
    assert known["reference"].command == "true"
    assert "cache/page" in known["page"].command


def test_only_what_was_named_runs_and_only_what_it_needs_is_prepared() -> None:
    (phase,) = phases.chosen("short", ["test-page"])
    assert phase.target == "test-page"
    assert phases.lanes_for((phase,)) == ((), ("page", "browser"))


def test_a_phase_that_does_not_exist_is_named() -> None:
    with pytest.raises(SystemExit, match="no such phase in this scope: prove-allocator"):
        phases.chosen("short", ["prove-allocator"])


def test_all_is_everything_and_short_is_a_part_of_it() -> None:
    everything, short = phases.chosen("all", []), phases.chosen("short", [])
    assert everything == phases.PHASES
    assert set(short) < set(everything)


@pytest.mark.parametrize(
    ("line", "tests"),
    [
        ("===== 1 failed, 164 passed, 2 skipped in 12.50s =====", (164, 1, 2)),
        ("10 passed in 26.76s", (10, 0, 0)),
        ("===== 3 passed, 1 error in 65.00s (0:01:05) =====", (3, 1, 0)),
        (
            "\x1b[1m     Summary\x1b[0m [  40.245s] 389 tests run: 388 passed, 1 failed, 0 skipped",
            (388, 1, 0),
        ),
        (
            "test result: ok. 3 passed; 0 failed; 2 ignored; 0 measured; finished in 0.01s",
            (3, 0, 2),
        ),
        ("a script printed that 3 passed in 1s", (0, 0, 0)),
        ("   Compiling 3 passed v1", (0, 0, 0)),
    ],
)
def test_closing_lines_are_counted_and_nothing_else(line: str, tests: tuple[int, int, int]) -> None:
    counted = phases.tests_in(line)
    assert (counted["passed"], counted["failed"], counted["skipped"]) == tests


def test_the_last_line_adds_up_tests_and_checks() -> None:
    ran = [
        phases.Ran("build", "passed", 1.0),
        phases.Ran("test-rust", "FAILED", 1.0, 0.0, Counter(passed=388, failed=1)),
        phases.Ran("test-page", "passed", 1.0, 0.0, Counter(passed=40, skipped=2)),
        phases.Ran("test-e2e", "not run: build failed", 0.0),
    ]
    assert phases.closing_line(ran) == "429 passed, 2 failed, 2 skipped"
