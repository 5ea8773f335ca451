"""Reads what tests need to know about a Markdown page: code blocks, headings, links, numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
README = REPOSITORY / "README.md"
README_ZH = REPOSITORY / "README.zh-CN.md"
BOOK = REPOSITORY / "docs"

FENCE = re.compile(r"^(`{3,})(.*)$")


@dataclass(frozen=True)
class CodeBlock:
    """A fenced block: its language and its text, which begins at line `first` (from 0)."""

    language: str
    lines: tuple[str, ...]
    first: int


def pages() -> list[Path]:
    """Every page that users and contributors read, the book's included."""
    top = [README, README_ZH, *(REPOSITORY / f"{name}.md" for name in TOP_PAGES)]
    return [*top, *book_pages()]


TOP_PAGES = ("ARCHITECTURE", "CONTRIBUTING", "CHANGELOG")


def book_pages() -> list[Path]:
    """The pages of the book; `docs/book` is what mdBook writes."""
    return sorted(page for page in BOOK.glob("*.md"))


def code_blocks(text: str) -> list[CodeBlock]:
    blocks = []
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        opening = FENCE.match(lines[number])
        number += 1
        if opening is None:
            continue
        first = number
        while number < len(lines) and lines[number].rstrip() != opening[1]:
            number += 1
        blocks.append(CodeBlock(opening[2].strip(), tuple(lines[first:number]), first))
        number += 1
    return blocks


def prose(text: str) -> str:
    """The text without its fenced blocks; lines keep their numbers."""
    lines = text.splitlines()
    for block in code_blocks(text):
        for number in range(block.first - 1, min(block.first + len(block.lines) + 1, len(lines))):
            lines[number] = ""
    return "\n".join(lines) + "\n"


def code_spans(text: str) -> list[str]:
    """What stands in backticks in the prose, lines joined."""
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", prose(text))]


def headings(text: str) -> list[tuple[int, str]]:
    """Each heading with its level."""
    found = re.findall(r"^(#{1,6}) +(.+?) *#*$", prose(text), re.MULTILINE)
    return [(len(marks), title) for marks, title in found]


def anchors(text: str) -> set[str]:
    """The names by which headings can be linked to, on GitHub and in the book alike."""
    names: set[str] = set()
    for _, title in headings(text):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title).lower()
        name = re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-")
        repeated = 0
        unique = name
        while unique in names:
            repeated += 1
            unique = f"{name}-{repeated}"
        names.add(unique)
    return names


def links(text: str) -> list[str]:
    """The targets of links and images."""
    without_code = re.sub(r"`[^`]*`", "", prose(text))
    inline = re.findall(r"\]\(([^()\s]+(?:\([^()]*\)[^()\s]*)?)(?: \"[^\"]*\")?\)", without_code)
    by_reference = re.findall(r"^\[[^]]+\]: +(\S+)", without_code, re.MULTILINE)
    return [*inline, *by_reference]


def numbers(text: str) -> set[str]:
    """The numbers in the prose. Digits inside of a word (`a100`, `x86-64`, `UTF-8`) are none."""
    plain = re.sub(r"\]\([^)]*\)", "]", prose(text))
    return set(re.findall(r"(?<![A-Za-z\d.,_-])\d+(?:[.,]\d+)*(?![A-Za-z\d_])", plain))
