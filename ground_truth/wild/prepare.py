"""Collects the scripts of `scripts.toml` into a folder that needs no network any more.

    python ground_truth/wild prepare --sources CLONES --out target/wild/bundle

`CLONES` has a clone of every repository at OWNER/NAME, with or without a work tree. What is taken
is what git has at the listed commit. Packages come from PyPI, or from a folder of wheels.
The bundle has no data: that is made before each run.
"""

from __future__ import annotations

import argparse
import dataclasses
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from .manifest import Manifest, Script, chosen_scripts, read_manifest

#: What training scripts read. Pictures, notebooks and checkpoints of a repository stay behind.
KINDS = (".py", ".txt", ".json", ".yaml", ".yml", ".toml", ".cfg", ".csv", ".in")
LARGEST = 1 << 20


def collect_script(script: Script, sources: Path, out: Path) -> None:
    clone = sources / script.repository
    if not clone.exists():
        raise SystemExit(f"there is no clone of {script.repository} at {clone}")
    listed = _git(clone, "ls-tree", "-r", "-l", script.commit, "--", *script.files).decode()
    wanted = {}
    for line in listed.splitlines():
        description, path = line.split("\t", 1)
        mode, kind, blob, size = description.split()
        # A shallow snapshot lists files that it lacks: these have no size.
        if kind != "blob" or mode == "120000" or not size.isdigit():
            continue
        if path in script.files or (path.endswith(KINDS) and int(size) <= LARGEST):
            wanted[path] = blob
    if script.path not in wanted:
        raise SystemExit(f"{script.repository} has no {script.path} at {script.commit}")
    for path, blob in wanted.items():
        target = out / script.repository / path
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(_git(clone, "cat-file", "blob", blob))


def _git(clone: Path, *arguments: str) -> bytes:
    return subprocess.run(
        ["git", "-c", "safe.directory=*", "-C", str(clone), *arguments],
        check=True,
        stdout=subprocess.PIPE,
    ).stdout


def collect_packages(manifest: Manifest, wheels: Path | None, out: Path) -> None:
    for name in sorted({package for script in manifest.scripts for package in script.packages}):
        requirement = f"{name}=={manifest.packages[name]}"
        folder = out / "downloaded"
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--only-binary=:all:", "--dest", str(folder), requirement]
        if wheels is not None:
            command += ["--no-index", "--find-links", str(wheels)]
        subprocess.run(command, check=True)
        for wheel in folder.glob("*.whl"):
            with zipfile.ZipFile(wheel) as opened:
                opened.extractall(out / name)
        shutil.rmtree(folder)


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="wild prepare",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sources", type=Path, required=True)
    parser.add_argument("--wheels", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default="*", help="names of scripts, with * for any part")
    arguments = parser.parse_args(words)
    whole = read_manifest()
    manifest = dataclasses.replace(whole, scripts=chosen_scripts(whole, arguments.only))
    shutil.rmtree(arguments.out, ignore_errors=True)
    for script in manifest.scripts:
        collect_script(script, arguments.sources, arguments.out / "repositories")
    collect_packages(manifest, arguments.wheels, arguments.out / "packages")
    size = sum(file.stat().st_size for file in arguments.out.rglob("*") if file.is_file())
    print(f"{len(manifest.scripts)} scripts, {size / 2**20:.1f} MiB")
    return 0
