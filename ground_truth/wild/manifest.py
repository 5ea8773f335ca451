"""Reads `scripts.toml`: which public scripts are run, from which commit, and with what."""

from __future__ import annotations

import fnmatch
import re
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import tomllib

from .recipes import RECIPES

MANIFEST = Path(__file__).resolve().parent / "scripts.toml"


class ManifestError(Exception):
    pass


@dataclass(frozen=True)
class Data:
    recipe: str
    #: Where it is written, relative to the root of the checkout.
    at: str
    options: dict[str, Any]


@dataclass(frozen=True)
class Script:
    name: str
    repository: str
    commit: str
    #: The script, relative to the root of its repository.
    path: str
    #: Where it is started, relative to the root of its repository.
    folder: str
    #: What is taken from the repository.
    files: list[str]
    arguments: list[str] = field(default_factory=list)
    #: What stands between `python` and the script: `-m torch.distributed.run …`
    launcher: list[str] = field(default_factory=list)
    data: list[Data] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    #: Pure Python packages that travel with it.
    packages: list[str] = field(default_factory=list)
    #: Modules that only draw or log, replaced by ones that do nothing.
    silent: list[str] = field(default_factory=list)
    #: Ends it after so many optimizer steps; 0 if it ends by itself.
    steps: int = 0

    @property
    def command(self) -> list[str]:
        """What follows `python`, in `folder`."""
        script = str(PurePosixPath(self.path).relative_to(self.folder))
        return [*self.launcher, script, *self.arguments]


@dataclass(frozen=True)
class Manifest:
    scripts: list[Script]
    #: Name and version on PyPI of every package that a script takes along.
    packages: dict[str, str]


def read_manifest(path: Path = MANIFEST) -> Manifest:
    content = tomllib.loads(path.read_text())
    repositories: dict[str, str] = content["repositories"]
    packages: dict[str, str] = content["packages"]
    for name, commit in repositories.items():
        if not re.fullmatch(r"[0-9a-f]{40}", commit):
            raise ManifestError(f"{name}: {commit!r} is not a full commit")
    scripts = [_script(entry, repositories, packages) for entry in content["script"]]
    names = [script.name for script in scripts]
    for name in names:
        if names.count(name) > 1:
            raise ManifestError(f"{name} is listed twice")
    unused = set(repositories) - {script.repository for script in scripts}
    if unused:
        raise ManifestError(f"no script comes from {', '.join(sorted(unused))}")
    return Manifest(scripts, packages)


def chosen_scripts(manifest: Manifest, only: str) -> list[Script]:
    """The scripts that one of these names stands for, separated by commas, with * for any part."""
    return [
        script
        for script in manifest.scripts
        if any(fnmatch.fnmatch(script.name, pattern) for pattern in only.split(","))
    ]


KEYS = {
    "name",
    "repository",
    "path",
    "folder",
    "files",
    "arguments",
    "launcher",
    "data",
    "environment",
    "packages",
    "silent",
    "steps",
}


def _script(
    entry: dict[str, Any], repositories: dict[str, str], packages: dict[str, str]
) -> Script:
    name = entry.get("name", "a script without a name")
    unknown = set(entry) - KEYS
    if unknown:
        raise ManifestError(f"{name}: unknown key {', '.join(sorted(unknown))}")
    if entry["repository"] not in repositories:
        raise ManifestError(f"{name}: no commit is given for {entry['repository']}")
    folder = entry.get("folder", str(PurePosixPath(entry["path"]).parent))
    if not PurePosixPath(entry["path"]).is_relative_to(folder):
        raise ManifestError(f"{name}: {entry['path']} is not below {folder}")
    for package in entry.get("packages", []):
        if package not in packages:
            raise ManifestError(f"{name}: no version is given for the package {package}")
    data = []
    for item in entry.get("data", []):
        options = {key: value for key, value in item.items() if key not in ("recipe", "at")}
        if item["recipe"] not in RECIPES:
            raise ManifestError(f"{name}: there is no recipe {item['recipe']}")
        # Some scripts read `../data`: the run's folder is the one above the checkout.
        if PurePosixPath(item["at"]).is_absolute() or ".." in PurePosixPath(item["at"]).parts[1:]:
            raise ManifestError(f"{name}: {item['at']} is outside the run's folder")
        data.append(Data(item["recipe"], item["at"], options))
    return Script(
        name=name,
        repository=entry["repository"],
        commit=repositories[entry["repository"]],
        path=entry["path"],
        folder=folder,
        files=entry.get("files", [folder]),
        arguments=entry.get("arguments", []),
        launcher=entry.get("launcher", []),
        data=data,
        environment=entry.get("environment", {}),
        packages=entry.get("packages", []),
        silent=entry.get("silent", []),
        steps=entry.get("steps", 0),
    )
