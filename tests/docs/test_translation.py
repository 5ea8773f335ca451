"""The Chinese README has the commands, figures, links and sections of the English one."""

from __future__ import annotations

from pages import README, README_ZH, code_blocks, code_spans, headings, links, numbers

ENGLISH = README.read_text()
CHINESE = README_ZH.read_text()


def test_the_code_is_the_same() -> None:
    theirs, ours = (
        [(block.language, block.lines) for block in code_blocks(text)]
        for text in (ENGLISH, CHINESE)
    )
    assert ours == theirs


def test_commands_in_the_prose_are_the_same() -> None:
    assert set(code_spans(CHINESE)) == set(code_spans(ENGLISH))


def test_the_figures_are_the_same() -> None:
    assert numbers(CHINESE) == numbers(ENGLISH)


def test_the_links_are_the_same() -> None:
    exchanged = {README.name: README_ZH.name, README_ZH.name: README.name}
    assert links(CHINESE) == [exchanged.get(target, target) for target in links(ENGLISH)]


def test_the_sections_are_the_same() -> None:
    assert [level for level, _ in headings(CHINESE)] == [level for level, _ in headings(ENGLISH)]
