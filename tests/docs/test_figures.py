"""Figures that pages show of a machine: which command prints them, and that it still does so.

A block of the language `text` begins with its command. The figures are those of one machine, so
only the words are compared, with the texts in the programs that print them.
"""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest
from pages import README, REPOSITORY, CodeBlock, book_pages, code_blocks

BLOCKS = [
    pytest.param(block, id=f"{page.stem}:{block.first}")
    for page in (README, *book_pages())
    for block in code_blocks(page.read_text())
    if block.language == "text"
]

PROGRAMS = ("bench/*.py", "crates/*/examples/*.rs", "ground_truth/harness/**/*.py")

CARD = "NVIDIA"
"""The first word of a card's name, as the recordings have it."""

MACHINE = re.compile(r"^ +on \d+ x ")
"""A line that names the machine."""


@functools.lru_cache(None)
def printed_words() -> frozenset[str]:
    """The words in all texts of the programs that print figures, and in their names for cases."""
    words: set[str] = set()
    for pattern in PROGRAMS:
        for path in REPOSITORY.glob(pattern):
            words |= set(words_of(" ".join(texts_of(path))))
    return frozenset(words)


def texts_of(path: Path) -> list[str]:
    if path.suffix == ".rs":
        return re.findall(r'"((?:[^"\\]|\\.)*)"', path.read_text())
    nodes = list(ast.walk(ast.parse(path.read_text())))
    described = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    constants = [node for node in nodes if isinstance(node, ast.Constant)]
    values = [node.value for node in constants if id(node) not in described]
    return [value for value in values if isinstance(value, str)]


def words_of(text: str) -> list[str]:
    return re.findall(r"[A-Za-z]{3,}", text)


@pytest.mark.parametrize("block", BLOCKS)
def test_figures_have_a_command_that_prints_such_lines(block: CodeBlock) -> None:
    assert block.lines[0].startswith("$ "), "the first line is the command"
    lines = [line for line in block.lines if not line.startswith("$ ") and not MACHINE.match(line)]
    unknown = {word for line in lines for word in words_of(line)} - printed_words() - {CARD}
    assert not unknown


def test_another_word_would_be_noticed() -> None:
    assert "rehearsed" in printed_words() and "tried" not in printed_words()
