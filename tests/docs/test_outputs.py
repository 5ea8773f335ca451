"""What README and book show is what the commands print.

Each page with sessions is one test, in a folder of its own with the repository's examples and
recordings; its sessions run in order. `make renew-docs` writes what the commands print now into the
pages.

The command is taken from `GHOSTGPU_COMMAND`, else from `target/release`; scripts are
rehearsed with the first of `GHOSTGPU_TEST_PYTHON`, else with the python that runs the tests.
"""

from __future__ import annotations

import difflib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from console import (
    ELISION,
    SESSION,
    SLOW_SESSION,
    Step,
    matches,
    renewed,
    scripts,
    sessions,
    steps,
)
from pages import BOOK, README, README_ZH, REPOSITORY, CodeBlock, book_pages, code_blocks

PROGRAM = Path(os.environ.get("GHOSTGPU_COMMAND") or REPOSITORY / "target/release/ghostgpu")
PYTHON = (os.environ.get("GHOSTGPU_TEST_PYTHON") or sys.executable).split(os.pathsep)[0]
IS_RENEWING = os.environ.get("GHOSTGPU_RENEW_DOCS") == "1"
WITH_SLOW = os.environ.get("GHOSTGPU_TEST_SCOPE") != "short"

TIMEOUT_S = 1200 if WITH_SLOW else 400
"""For all sessions of a page; a hang must not hold up the whole suite."""

BETWEEN_COMMANDS = "\x1e"

PAGES = [page for page in (README, *book_pages()) if sessions(page.read_text(), WITH_SLOW)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    blocks = sessions(page.read_text(), WITH_SLOW)
    all_steps = [step for block in blocks for step in steps(block)]
    for name, script in scripts(page.read_text()).items():
        (tmp_path / name).write_text(script)
    outputs = run_all([step.command for step in all_steps], tmp_path)
    if IS_RENEWING:
        renew(page, blocks, outputs)
    else:
        differences = [
            difference(step, printed)
            for step, printed in zip(all_steps, outputs, strict=True)
            if not matches(step.shown, printed)
        ]
        assert not differences, "\n\n".join([*differences, "`make renew-docs` writes them anew"])


def test_no_session_leaves_everything_out() -> None:
    empty = [
        step.command
        for page in PAGES
        for block in sessions(page.read_text())
        for step in steps(block)
        if step.shown == (ELISION,)
    ]
    assert not empty


def run_all(commands: list[str], folder: Path) -> list[tuple[str, ...]]:
    """What each command prints, in one shell, so that `$?` and files carry over."""
    shutil.copytree(REPOSITORY / "examples", folder / "examples")
    (folder / "ground_truth").symlink_to(REPOSITORY / "ground_truth")
    programs = folder / "bin"
    programs.mkdir()
    (programs / "ghostgpu").write_text(f'#!/bin/sh\nexec "{PROGRAM}" "$@"\n')
    (programs / "ghostgpu").chmod(0o755)
    script = "".join(
        f"{command}\ncode=$?; printf '{BETWEEN_COMMANDS}'; (exit $code)\n" for command in commands
    )
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=_environment(programs, folder / "cache"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    *outputs, rest = done.stdout.split(BETWEEN_COMMANDS)
    assert rest == "" and len(outputs) == len(commands), done.stdout + done.stderr
    return [tuple(line.rstrip() for line in output.splitlines()) for output in outputs]


def _environment(programs: Path, cache: Path) -> dict[str, str]:
    """Ours, without what would steer torch, the script or the terminal."""
    steering = ("PYTORCH_", "CUDA_", "TORCH", "TRITON_", "LD_", "PYTHON", "NVIDIA_", "GHOSTGPU_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(steering)}
    return {
        **kept,
        "PATH": os.pathsep.join((str(programs), str(Path(PYTHON).parent), kept["PATH"])),
        "GHOSTGPU_AGENT_DIR": str(REPOSITORY / "python/ghostgpu/agent"),
        "XDG_CACHE_HOME": str(cache),
        "HF_HUB_OFFLINE": "1",
        "COLUMNS": "100",
        "NO_COLOR": "1",
    }


def difference(step: Step, printed: tuple[str, ...]) -> str:
    lines = difflib.unified_diff(step.shown, printed, "the page", "the command", lineterm="")
    return "\n".join([f"$ {step.command}", *lines])


def renew(page: Path, blocks: list[CodeBlock], outputs: list[tuple[str, ...]]) -> None:
    """Write what was printed into the page; the translation of the README shows the same."""
    remaining = iter(outputs)
    new_blocks = []
    for block in blocks:
        lines: list[str] = []
        for step in steps(block):
            lines += [f"$ {step.command}", *renewed(step.shown, next(remaining))]
        new_blocks.append(lines)
    replace(page, blocks, new_blocks)
    if page == README:
        replace(README_ZH, sessions(README_ZH.read_text()), new_blocks)


def replace(page: Path, blocks: list[CodeBlock], new_blocks: list[list[str]]) -> None:
    lines = page.read_text().splitlines()
    for block, new in reversed(list(zip(blocks, new_blocks, strict=True))):
        lines[block.first : block.first + len(block.lines)] = new
    page.write_text("\n".join(lines) + "\n")


def test_what_is_printed_on_a_page_is_a_session_or_has_another_language() -> None:
    """A block without a language would not be tested, whatever it shows."""
    nameless = [
        f"{page.name}:{block.first}"
        for page in (README, README_ZH, *book_pages())
        for block in code_blocks(page.read_text())
        if not block.language or (block.language not in LANGUAGES)
    ]
    assert BOOK.is_dir() and not nameless


LANGUAGES = {
    SESSION: "a session; tested here",
    SLOW_SESSION: "the same, in `make test-all` only",
    "sh": "commands to copy; their flags are tested",
    "text": "figures of a machine; their form is tested",
    "python": "",
    "diff": "",
    "json": "",
    "toml": "",
    "yaml": "",
}
