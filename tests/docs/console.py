"""The sessions that the pages show: commands, and what they print.

A fenced block of the language `console` is a session. A line that begins with `$ ` is a command for
bash, and what follows up to the next one is what it prints on standard output. Two things stand
for what is left out:

- `…` alone on a line: any number of lines;
- `[..]` inside of a line: any text.

A block of the language `console slow` takes too long for every test run; `make test` leaves it to
`make test-all`. A `python` block that begins with a comment such as `# train.py` is a script, and
the sessions of its page find it under that name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pages import CodeBlock, code_blocks

SESSION = "console"
SLOW_SESSION = "console slow"
ELISION = "…"
WILDCARD = "[..]"


@dataclass(frozen=True)
class Step:
    """A command, and what the page says that it prints."""

    command: str
    shown: tuple[str, ...]


def sessions(text: str, with_slow: bool = True) -> list[CodeBlock]:
    languages = (SESSION, SLOW_SESSION) if with_slow else (SESSION,)
    return [block for block in code_blocks(text) if block.language in languages]


def scripts(text: str) -> dict[str, str]:
    """The scripts that a page shows, by the names that their first lines give."""
    blocks = [block for block in code_blocks(text) if block.language == "python" and block.lines]
    named = [(re.fullmatch(r"# (\w+\.py)", block.lines[0]), block) for block in blocks]
    return {name[1]: "\n".join([*block.lines, ""]) for name, block in named if name}


def steps(block: CodeBlock) -> list[Step]:
    found: list[tuple[str, list[str]]] = []
    for line in block.lines:
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found:
            found[-1][1].append(line)
        else:
            raise ValueError(
                f"line {block.first + 1}: a session begins with a command, not {line!r}"
            )
    return [Step(command, tuple(shown)) for command, shown in found]


def matches(shown: tuple[str, ...], printed: tuple[str, ...]) -> bool:
    """Whether a program printed what a page shows."""
    pattern = "".join(
        r"(?:[^\n]*\n)*?" if line == ELISION else _line_pattern(line) + "\n" for line in shown
    )
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in printed)) is not None


def renewed(shown: tuple[str, ...], printed: tuple[str, ...]) -> tuple[str, ...]:
    """What a page should show instead, cut down as it was before.

    Before the first elision and behind the last as many lines are kept as there were. A part
    between two elisions is found again by the words its first line begins with, and is left out if
    they are gone.
    """
    if matches(shown, printed):
        return shown
    patterns = [line for line in shown if WILDCARD in line]
    lines = tuple(_with_wildcards(line, patterns) for line in printed)
    parts = _split(shown)
    if len(parts) == 1:
        return lines
    head, *middle, tail = parts
    kept = list(lines[: len(head)])
    position = len(kept)
    end = max(position, len(lines) - len(tail))
    for part in middle:
        start = _find(part, lines, position, end)
        if start is not None:
            kept += [ELISION, *lines[start : start + len(part)]]
            position = start + len(part)
    if position < end:
        kept.append(ELISION)
    return (*kept, *lines[end:])


def _line_pattern(line: str) -> str:
    return r"[^\n]*".join(re.escape(part) for part in line.split(WILDCARD))


def _with_wildcards(line: str, patterns: list[str]) -> str:
    return next((p for p in patterns if re.fullmatch(_line_pattern(p), line)), line)


def _split(shown: tuple[str, ...]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for line in shown:
        if line == ELISION:
            parts.append([])
        else:
            parts[-1].append(line)
    return parts


def _find(part: list[str], lines: tuple[str, ...], start: int, end: int) -> int | None:
    if not part:
        return None
    label = re.split(r" {2,}|\d", part[0].strip(), maxsplit=1)[0]
    return next((n for n in range(start, end) if lines[n].strip().startswith(label)), None)
