"""Commands and flags that the pages name are there.

Sessions are run elsewhere. This looks at what is only shown: every `ghostgpu …` in a block of the
language `sh` and in the prose, and every flag in the prose.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from console import SESSION, SLOW_SESSION
from pages import README, README_ZH, REPOSITORY, book_pages, code_blocks, code_spans

PROGRAM = Path(os.environ.get("GHOSTGPU_COMMAND") or REPOSITORY / "target/release/ghostgpu")
PAGES = [README, README_ZH, *book_pages()]

FLAG = re.compile(r"--[a-z][a-z0-9-]*")

#: Flags of other programs, and of the scripts in examples.
OTHERS = {
    "--accumulate",
    "--batch-size",
    "--bf16",
    "--config",
    "--gradient-checkpointing",
    "--image-size",
    "--locked",
    "--lowvram",
    "--max-length",
    "--medvram",
    "--nproc-per-node",
    "--seq-len",
}


@functools.lru_cache(None)
def help_of(*path: str) -> str:
    done = subprocess.run(
        [str(PROGRAM), *path, "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"ghostgpu {' '.join(path)}: {done.stderr}"
    return done.stdout


def flags_of(*path: str) -> set[str]:
    """The flags with which lines of a help text begin."""
    lines = re.findall(r"^ +(?:-\w, )?--.*$", help_of(*path), re.MULTILINE)
    return {"--help", "--version", *(flag for line in lines for flag in FLAG.findall(line))}


def subcommands(*path: str) -> set[str]:
    _, _, listed = help_of(*path).partition("\nCommands:\n")
    names = set(re.findall(r"^  ([a-z][a-z-]*)", listed.split("\n\n")[0], re.MULTILINE))
    return names - {"help"}


def all_flags() -> set[str]:
    flags = flags_of()
    for name in subcommands():
        flags |= flags_of(name)
        for below in subcommands(name):
            flags |= flags_of(name, below)
    return flags


def shown_commands(text: str) -> list[str]:
    lines = [
        re.sub(r"\s#\s.*", "", line.removeprefix("$ "))
        for block in code_blocks(text)
        if block.language in ("sh", SESSION, SLOW_SESSION)
        for line in block.lines
    ]
    commands = [part.strip() for line in lines for part in line.split("|")]
    return [each for each in (*commands, *code_spans(text)) if each.startswith("ghostgpu ")]


def check(command: str) -> None:
    """Fails unless the command's name and flags exist. What follows a script is its own."""
    words = shlex.split(command.replace("…", ""))[1:]
    path: list[str] = []
    while words and words[0] in subcommands(*path):
        path.append(words.pop(0))
    if words and not path:
        assert words[0].startswith("-"), f"`{command}`: there is no command `{words[0]}`"
    known = flags_of(*path) | OTHERS
    for word in words:
        if word == "--" or word.endswith((".py", ".ipynb")):
            break
        for flag in FLAG.findall(word) if word.startswith("--") else []:
            assert flag in known, f"`{command}`: there is no `{flag}`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_their_flags_exist(page: Path) -> None:
    for command in shown_commands(page.read_text()):
        check(command)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_flags_in_the_prose_exist(page: Path) -> None:
    spans = [span for span in code_spans(page.read_text()) if span.startswith("--")]
    named = {flag for span in spans for flag in FLAG.findall(span)[:1]}
    assert named <= all_flags() | OTHERS


def test_a_command_that_is_not_there_is_found() -> None:
    check("ghostgpu run --gpu 3060 train.py --no-such-flag")
    check("ghostgpu run --gpu 3060 -- python train.py --no-such-flag")
    for wrong in ("ghostgpu rum train.py", "ghostgpu run --no-such-flag train.py"):
        with pytest.raises(AssertionError, match="there is no"):
            check(wrong)
