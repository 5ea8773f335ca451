"""Results of replays, kept between test runs under a key over everything that decides them.

Only what a replay measured is kept, never a verdict: the comparison with the real card is made
every time. Kept are cases that are deterministic and were found to be as expected. The key covers
the programs and libraries that were built, the agent, the harness with the cases' definitions, what
was recorded, the machine and the version of every installed package. Continuous integration keeps
and takes nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

#: Builds whose results are kept; those of older ones are removed.
KEPT_BUILDS = 4


def digest_of_files(roots: Iterable[Path]) -> str:
    """One digest over the names and contents of files, and of all files in folders."""
    whole = hashlib.sha256()
    for root in roots:
        files = sorted(root.rglob("*")) if root.is_dir() else [root]
        for path in files:
            if path.is_file() and "__pycache__" not in path.parts:
                name = path.relative_to(root.parent).as_posix()
                whole.update(f"{name}\0{path.stat().st_size}\0".encode())
                whole.update(path.read_bytes())
    return whole.hexdigest()


def built_files(program: Path) -> list[Path]:
    """The command and what it preloads and starts: programs and libraries beside it."""
    beside = (path for path in sorted(program.parent.iterdir()) if path.is_file())
    built = [path for path in beside if path.suffix == ".so" or path.stat().st_mode & 0o100]
    named = os.environ.get("GHOSTGPU_LIBRARY")
    return [*built, *([Path(named)] if named else [])]


def versions() -> dict[str, str]:
    """Python, the machine, and every installed package."""
    packages = {each.metadata["Name"]: each.version for each in metadata.distributions()}
    machine = f"{platform.machine()}, {os.cpu_count()} processors"
    return {**packages, "python": platform.python_version(), "machine": machine}


def key(parts: dict[str, Any]) -> str:
    """A short name for these parts: another one when any of them is another."""
    text = json.dumps(parts, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class ReplayCache:
    """Keeps the files `cases/NAME.json` and `events/NAME.json.gz` of replays of one build."""

    def __init__(self, folder: Path, build: str, recorded: Path) -> None:
        self.folder = folder / build
        self.recorded = recorded

    def _kept(self, name: str) -> dict[Path, Path]:
        """Where each file of a case is kept, by where it lies in a folder of results."""
        inside = [Path("cases") / f"{name}.json", Path("events") / f"{name}.json.gz"]
        recorded = [self.recorded / path for path in inside]
        case = key({"recorded": digest_of_files(path for path in recorded if path.exists())})
        return {path: self.folder / case / path for path in inside}

    def restore(self, names: Iterable[str], results: Path) -> list[str]:
        """Copies what is kept into a folder of results; returns which cases were not kept."""
        missing = []
        for name in names:
            kept = {inside: path for inside, path in self._kept(name).items() if path.exists()}
            if Path("cases") / f"{name}.json" not in kept:
                missing.append(name)
                continue
            for inside, path in kept.items():
                _copy(path, results / inside)
        return missing

    def keep(self, name: str, results: Path) -> None:
        """Keeps what a replay measured. The result itself comes last: it says that all is there."""
        for inside, path in reversed(self._kept(name).items()):
            if (results / inside).exists():
                _copy(results / inside, path)

    def remove_old_builds(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        os.utime(self.folder)
        builds = sorted(self.folder.parent.iterdir(), key=lambda path: -path.stat().st_mtime)
        for path in builds[KEPT_BUILDS:]:
            shutil.rmtree(path, ignore_errors=True)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    # Another run may read it: it is there whole, or not at all.
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.copyfile(source, unfinished)
    unfinished.replace(target)


def open_cache(program: Path, agent: Path, recorded: Path) -> ReplayCache | None:
    """The cache for what is built now; None in continuous integration, or where none is wanted."""
    folder = os.environ.get("GHOSTGPU_TEST_CACHE")
    is_ci = os.environ.get("CI", "").lower() not in ("", "0", "false", "no")
    if not folder or is_ci:
        return None
    build = {
        "built": digest_of_files(built_files(program)),
        "agent": digest_of_files([agent]),
        "harness": digest_of_files([Path(__file__).resolve().parent]),
        "versions": versions(),
    }
    cache = ReplayCache(Path(folder) / "replays", key(build), recorded)
    cache.remove_old_builds()
    return cache
