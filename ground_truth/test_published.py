"""What others measured on cards that are not here, beside what the virtual card says.

Most rows need the torch and the transformers they were measured with, so they are compared by hand
(`harness/published.py`); here one is that comes out the same with any, and the harness itself is
tested.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
from test_exactness import program

from published import HEADER, Outcome, Row, line, outcome_of, read_rows, rehearse, summary
from published_training import LANGUAGE_MODELS

MIB = 1 << 20
ROW = Row("net-SGD-8", "3060", "2.6.0", "net", 8, None, 4, "SGD", "growth", 1000 * MIB, "somebody")


def test_every_row_has_a_source_and_a_name_of_its_own() -> None:
    rows = read_rows()
    assert len(rows) >= 20
    assert len({row.name for row in rows}) == len(rows)
    for row in rows:
        assert row.source.startswith("github:"), row.name
        assert row.bytes % (2 * MIB) == 0, f"{row.name}: the driver counts in pages of 2 MiB"
        assert row.quantity in ("growth", "reserved")


def test_a_row_is_compared_by_what_the_card_held_beyond_its_context() -> None:
    printed = (
        "a line of the script\n"
        f'figures {{"context": {100 * MIB}, "outside": {134 * MIB}, "reserved": {976 * MIB}}}\n'
    )
    outcome = outcome_of(ROW, printed)
    assert outcome == Outcome(ROW, reserved=976 * MIB, libraries=34 * MIB)
    assert outcome.error == pytest.approx(0.01)
    assert len(line(ROW, outcome)) == len(HEADER)
    assert line(ROW, outcome).endswith("+1.00%")


def test_a_row_about_pytorch_alone_leaves_libraries_out() -> None:
    row = replace(ROW, quantity="reserved")
    assert Outcome(row, reserved=1000 * MIB, libraries=34 * MIB).error == 0


def test_a_row_that_did_not_end_is_said_and_not_counted() -> None:
    assert outcome_of(ROW, "Traceback") is None
    assert line(ROW, None).endswith("did not end")
    assert summary([]) == "nothing was rehearsed"


def test_the_summary_has_the_median_and_the_share_within_one_percent() -> None:
    outcomes = [Outcome(ROW, reserved=mib * MIB, libraries=0) for mib in (995, 1020, 900)]
    assert summary(outcomes) == "median error 2.00%, largest 10.00%, 1 of 3 within 1 %"


def test_a_published_training_reserves_on_a_t4_what_it_reserved_there() -> None:
    row = next(row for row in read_rows() if row.name == "t4-distilgpt2-AdamW-32")
    assert row.model in LANGUAGE_MODELS
    outcome = rehearse(row, program(), sys.executable)
    assert outcome is not None
    assert outcome.reserved == row.bytes
