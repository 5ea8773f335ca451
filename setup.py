"""Puts the native parts into the wheel, beside the Python package.

Everything that can be said declaratively stands in `pyproject.toml`. Here is only what setuptools
cannot know: where the native parts come from, and that the wheel is for one platform but for every
Python, since nothing in it is linked against Python.

In a checkout cargo builds the parts. A source distribution carries them built, in `prebuilt/`, and
installs without cargo. Variables:

    GHOSTGPU_BUILD_FROM_SOURCE=1   let cargo build, even where built parts are there
    GHOSTGPU_BUILD_TARGET=TRIPLE   let `cargo zigbuild` build for this target; a target may name the
                                   oldest glibc to run with (`make wheel` does)
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
PREBUILT = ROOT / "prebuilt" / f"{sys.platform}-{platform.machine()}"


class BuildWithNativeParts(build_py):
    """`build_py`, and then the native parts."""

    def run(self) -> None:
        super().run()
        built = prebuilt() or cargo_build()
        # An editable installation uses the sources themselves: there the parts go too.
        package_dir = ROOT / "python" if self.editable_mode else Path(self.build_lib)
        target = package_dir / "ghostgpu" / "_native"
        target.mkdir(parents=True, exist_ok=True)
        # What an earlier build left under names that are no longer used.
        for old in {path.name for path in target.iterdir()} - {file.name for file in built}:
            (target / old).unlink()
        for file in built:
            # To a new name first: the old file may be running.
            temporary = target / f".{file.name}.new"
            shutil.copy2(file, temporary)
            temporary.replace(target / file.name)


class NativeDistribution(Distribution):
    """Goes where things for one platform go: auditwheel refuses native parts anywhere else."""

    def has_ext_modules(self) -> bool:
        return True


class PlatformWheel(bdist_wheel):
    """A wheel for this platform that any Python 3 can use."""

    def get_tag(self) -> tuple[str, str, str]:
        _, _, platform = super().get_tag()
        return "py3", "none", platform


def prebuilt() -> list[Path]:
    """The built parts of a source distribution; none in a checkout, where they may be stale."""
    is_source_distribution = (ROOT / "PKG-INFO").is_file()
    if not is_source_distribution or os.environ.get("GHOSTGPU_BUILD_FROM_SOURCE") == "1":
        return []
    return sorted(PREBUILT.iterdir()) if PREBUILT.is_dir() else []


def cargo_build() -> list[Path]:
    """Build all native parts; returns the programs and shared libraries among what came out."""
    if not sys.platform.startswith("linux"):
        raise SystemExit("error: GhostGPU is for Linux: it stands in for shared libraries of Linux")
    cargo = shutil.which("cargo")
    if cargo is None:
        raise SystemExit(
            "error: building GhostGPU needs cargo, which was not found on the PATH\n\n"
            f"hint: install Rust {oldest_rust()} or newer (https://rustup.rs, or your "
            "distribution's rustup)"
        )
    target = os.environ.get("GHOSTGPU_BUILD_TARGET")
    how = ["zigbuild", "--target", target] if target else ["build"]
    command = [cargo, *how, "--release", "--locked"]
    command += ["--message-format=json-render-diagnostics"]
    print("running", " ".join(command), flush=True)
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit("error: cargo could not build the native parts; its messages are above")
    messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [
        Path(name)
        for message in messages
        if message["reason"] == "compiler-artifact" and is_ours(message["manifest_path"])
        for kind, name in artifacts(message)
        if kind == "bin" or (kind == "cdylib" and name.endswith(".so"))
    ]


def oldest_rust() -> str:
    """The oldest Rust that builds this, from the workspace's manifest."""
    found = re.search(r'^rust-version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    return found[1] if found else "stable"


def is_ours(manifest: str) -> bool:
    """Whether a crate is one of this project's, and not one that it depends on."""
    return (ROOT / "crates") in Path(manifest).parents


def artifacts(message: dict[str, Any]) -> list[tuple[str, str]]:
    """Each kind of a built crate with each of its files."""
    return [(kind, name) for kind in message["target"]["kind"] for name in message["filenames"]]


setup(
    distclass=NativeDistribution,
    cmdclass={"build_py": BuildWithNativeParts, "bdist_wheel": PlatformWheel},
)
