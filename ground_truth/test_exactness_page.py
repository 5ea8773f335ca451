"""The figures of docs/exactness.md follow from a replay, and the READMEs repeat them."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "harness"))

from compare import compare_case
from deviations import Deviation
from exactness_page import BEGIN, END, replace_section, section

REPOSITORY = Path(__file__).resolve().parents[1]
PAGE = REPOSITORY / "docs/exactness.md"


def result(name: str, family: str, allocated: int) -> dict[str, Any]:
    step = {
        "peak_allocated_bytes": allocated,
        "peak_reserved_bytes": 4 << 20,
        "allocations": 5,
        "retries": 0,
        "process_bytes": 600 << 20,
    }
    return {
        "case": name,
        "family": family,
        "outcome": "finished",
        "oom": None,
        "steps": [step],
        "environment": {"driver": "1.2", "torch": "2.11.0"},
    }


def test_the_section_counts_what_is_equal_and_lists_what_is_not() -> None:
    real = {
        "seen": result("seen", "vision", 1000),
        "new": result("new", "own_models", 1000),
        "off": result("off", "own_models", 1000),
    }
    virtual = {**real, "off": result("off", "own_models", 1500)}
    comparisons = [compare_case(name, real[name], virtual[name]) for name in real]
    known = {"off": Deviation("off", 500, 0, "a reason that is known")}
    text = section(real, comparisons, known, ({"a": 3, "b": 4}, {"a": 3, "b": 5}))
    assert max(len(line) for line in text.splitlines()) <= 110
    text = " ".join(text.split())
    assert "**2 of 3 cases are equal" in text
    assert "Of the 2 models that were recorded after the rules were settled" in text
    assert "(`further_models`, `own_models`, `met_later`), 1 are." in text
    assert "for 1 of 2 models (b: 5 instead of 4)" in text
    assert "| off | +500 (+50.00%) | 0 | a reason that is known |" in text
    assert "| seen |" not in text


def test_only_what_stands_between_the_marks_is_replaced() -> None:
    text = f"above\n{BEGIN}\nold figures\n{END}\nbelow\n"
    assert replace_section(text, "new figures\n") == f"above\n{BEGIN}\nnew figures\n{END}\nbelow\n"
    with pytest.raises(SystemExit):
        replace_section("no marks", "new figures\n")


def test_the_page_has_the_marks() -> None:
    page = PAGE.read_text()
    assert replace_section(page, "") != page


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_the_readme_has_the_figures_of_the_page(name: str) -> None:
    found = re.search(r"\*\*(\d+) of (\d+) cases are equal", PAGE.read_text())
    assert found is not None
    sentence = re.search(r"\*\*[^*]*H200[^*]*\*\*", (REPOSITORY / name).read_text())
    assert sentence is not None
    assert sorted(re.findall(r"\b\d+\b", sentence[0])) == sorted(found.groups())
