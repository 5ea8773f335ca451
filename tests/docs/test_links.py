"""Links lead somewhere, and the book has every page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import BOOK, README, README_ZH, anchors, book_pages, headings, links, pages

SUMMARY = BOOK / "SUMMARY.md"


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_links_lead_to_a_file_and_a_heading(page: Path) -> None:
    problems = []
    for target in links(page.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        if not file.exists():
            problems.append(f"{target}: there is no such file")
        elif anchor and anchor not in anchors(file.read_text()):
            problems.append(f"{target}: there is no such heading")
        elif page.parent == BOOK and BOOK not in file.parents:
            problems.append(f"{target}: lies outside of the book")
    assert not problems


def test_the_book_lists_every_page_once() -> None:
    listed = links(SUMMARY.read_text())
    assert sorted(listed) == sorted(p.name for p in book_pages() if p != SUMMARY)


@pytest.mark.parametrize("page", [README, README_ZH], ids=lambda page: page.name)
def test_the_readme_stays_short(page: Path) -> None:
    assert len(page.read_text().splitlines()) <= 150


def test_every_page_has_one_title() -> None:
    # In SUMMARY.md a title is a part of the book.
    for page in set(book_pages()) - {SUMMARY}:
        assert [level for level, _ in headings(page.read_text())].count(1) == 1, page.name
