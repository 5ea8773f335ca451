"""PyTorch's own tests end on virtual cards as the list says (see README.md)."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from classes import LEAST_SHARE, Classified, read_list, share, still_fits
from suites import Ended, Suite, run_alone, run_suite, suites

KNOWN = read_list()
KINDS = {"passed", "skipped", "values", "refused", "ours", "machine"}


def test_every_row_has_a_class_and_what_does_not_pass_a_reason() -> None:
    assert {row.suite for row in KNOWN.values()} == set(suites())
    for row in KNOWN.values():
        assert row.kind in KINDS, row
        assert row.reason or row.kind in ("passed", "skipped", "values"), row


def test_of_what_a_virtual_card_is_held_to_nearly_everything_passes() -> None:
    assert share(list(KNOWN.values())) >= LEAST_SHARE


@pytest.mark.parametrize("suite", suites().values(), ids=lambda suite: suite.name)
def test_the_tests_of_a_suite_end_as_the_list_says(suite: Suite, tmp_path: Path) -> None:
    source, packages = (
        os.environ.get("GHOSTGPU_PYTORCH_TESTS"),
        os.environ.get("GHOSTGPU_PYTORCH_PACKAGES"),
    )
    if not source or not packages:
        pytest.skip("PyTorch's tests are not here: `make test-pytorch` brings them")
    ran = run_suite(
        suite,
        Path(source),
        tmp_path / "results.jsonl",
        python=sys.executable,
        packages=Path(packages),
    )
    differing = {name: ended for name, ended in ran.items() if not fits(suite, name, ended)}
    # A test behind one that failed may find the process in a state that it does not expect.
    alone = run_alone(
        suite,
        Path(source),
        tmp_path,
        python=sys.executable,
        packages=Path(packages),
        names=tuple(differing),
    )
    left = {name: ended for name, ended in alone.items() if not fits(suite, name, ended)}
    assert not left
    missing = {test for (name, test) in KNOWN if name == suite.name} - set(ran)
    assert not missing


def fits(suite: Suite, name: str, ended: Ended) -> bool:
    row = KNOWN.get((suite.name, name), Classified(suite.name, name, "not in the list"))
    return still_fits(row, ended)
