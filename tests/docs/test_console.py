"""How a shown session is compared with what a program printed, and renewed."""

from __future__ import annotations

import pytest
from console import matches, renewed, sessions, steps

PRINTED = ("fits   yes", "peak   5 GiB", "stages", "one", "two", "lines", "three", "took 0.31 s")


@pytest.mark.parametrize(
    ("shown", "is_equal"),
    [
        (PRINTED, True),
        (PRINTED[:-1], False),
        ((*PRINTED[:-1], "took [..] s"), True),
        (("fits   yes", "…"), True),
        (("…", "took 0.31 s"), True),
        (("fits   yes", "…", "stages", "one", "…", "took 0.31 s"), True),
        (("fits   yes", "…", "stages", "two", "…"), False),
        (("…", "stages", "…", "peak   5 GiB", "…"), False),
        (("…", *PRINTED), True),
    ],
)
def test_elisions_stand_for_lines_and_wildcards_for_text(
    shown: tuple[str, ...], is_equal: bool
) -> None:
    assert matches(shown, PRINTED) == is_equal


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (("old",), PRINTED),
        (("old", "…"), ("fits   yes", "…")),
        (("fits   yes", "peak   4 GiB", "…"), ("fits   yes", "peak   5 GiB", "…")),
        (("old", "…", "older"), ("fits   yes", "…", "took 0.31 s")),
        (
            ("old", "…", "stages", "0", "…"),
            ("fits   yes", "…", "stages", "one", "…"),
        ),
        (("old", "…", "gone", "…"), ("fits   yes", "…")),
        (("old", "…", "took [..] s"), ("fits   yes", "…", "took [..] s")),
    ],
)
def test_a_renewed_session_is_cut_down_as_before(
    shown: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    assert renewed(shown, PRINTED) == expected
    assert matches(renewed(shown, PRINTED), PRINTED)


def test_what_still_matches_is_left_alone() -> None:
    shown = ("fits   yes", "…", "took [..] s")
    assert renewed(shown, PRINTED) is shown


def test_a_session_is_split_at_its_commands() -> None:
    page = "text\n\n```console\n$ one | cat\na\n\nb\n$ two\n```\n\n```sh\nthree\n```\n"
    (block,) = sessions(page)
    assert [(step.command, step.shown) for step in steps(block)] == [
        ("one | cat", ("a", "", "b")),
        ("two", ()),
    ]
