"""Builds the native parts with cargo and puts them into the wheel beside the Python package.

Everything that can be said declaratively stands in `pyproject.toml`. Here is only what setuptools
cannot know: that some files come from cargo, and that the wheel is for one platform but for every
Python, since nothing in it is linked against Python.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent


class BuildWithCargo(build_py):
    """`build_py`, and then the native parts."""

    def run(self) -> None:
        super().run()
        built = cargo_build()
        # An editable installation uses the sources themselves: there the parts go too.
        package_dir = ROOT / "python" if self.editable_mode else Path(self.build_lib)
        target = package_dir / "ghostgpu" / "_native"
        target.mkdir(parents=True, exist_ok=True)
        for file in built:
            # To a new name first: the old file may be running.
            temporary = target / f".{file.name}.new"
            shutil.copy2(file, temporary)
            temporary.replace(target / file.name)


class PlatformWheel(bdist_wheel):
    """A wheel for this platform that any Python 3 can use."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self) -> tuple[str, str, str]:
        _, _, platform = super().get_tag()
        return "py3", "none", platform


def cargo_build() -> list[Path]:
    """Build all native parts; returns the programs and shared libraries among what came out."""
    if not sys.platform.startswith("linux"):
        raise SystemExit("error: GhostGPU is for Linux: it stands in for shared libraries of Linux")
    cargo = shutil.which("cargo")
    if cargo is None:
        raise SystemExit(
            "error: building GhostGPU needs cargo, which was not found on the PATH\n\n"
            "hint: install Rust 1.88 or newer (https://rustup.rs, or your distribution's rustup)"
        )
    command = [cargo, "build", "--release", "--locked", "--message-format=json-render-diagnostics"]
    print("running", " ".join(command), flush=True)
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit("error: cargo could not build the native parts; its own words are above")
    messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [
        Path(name)
        for message in messages
        if message["reason"] == "compiler-artifact" and is_ours(message["manifest_path"])
        for kind, name in artifacts(message)
        if kind == "bin" or (kind == "cdylib" and name.endswith(".so"))
    ]


def is_ours(manifest: str) -> bool:
    """Whether a crate is one of this project's, and not one that it depends on."""
    return (ROOT / "crates") in Path(manifest).parents


def artifacts(message: dict[str, Any]) -> list[tuple[str, str]]:
    """Each kind of a built crate with each of its files."""
    return [(kind, name) for kind in message["target"]["kind"] for name in message["filenames"]]


setup(cmdclass={"build_py": BuildWithCargo, "bdist_wheel": PlatformWheel})
