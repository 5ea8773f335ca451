"""Builds the native parts with cargo and puts them into the wheel beside the Python package.

Everything that can be said declaratively stands in `pyproject.toml`. Here is only what setuptools
cannot know: that some files come from cargo, and that the wheel is for one platform but for every
Python, since nothing in it is linked against Python.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent

NATIVE_FILES = (
    "ghostgpu",  # the command
    "libghostgpu.so",  # the stand-in library
    "ghostgpu-cudnn",  # the program that asks an installed cuDNN
    "libghostgpu_oracle_blas.so",  # what that cuDNN finds in place of cuBLASLt
)


class BuildWithCargo(build_py):
    """`build_py`, and then the native parts."""

    def run(self) -> None:
        super().run()
        built = cargo_build()
        # An editable installation uses the sources themselves: there the parts go too.
        package_dir = ROOT / "python" if self.editable_mode else Path(self.build_lib)
        target = package_dir / "ghostgpu" / "_native"
        target.mkdir(parents=True, exist_ok=True)
        for name in NATIVE_FILES:
            # To a new name first: the old file may be running.
            temporary = target / f".{name}.new"
            shutil.copy2(built / name, temporary)
            temporary.replace(target / name)


class PlatformWheel(bdist_wheel):
    """A wheel for this platform that any Python 3 can use."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self) -> tuple[str, str, str]:
        _, _, platform = super().get_tag()
        return "py3", "none", platform


def cargo_build() -> Path:
    """Build all native parts; returns the folder they lie in."""
    if not sys.platform.startswith("linux"):
        raise SystemExit("error: GhostGPU is for Linux: it stands in for shared libraries of Linux")
    cargo = shutil.which("cargo")
    if cargo is None:
        raise SystemExit(
            "error: building GhostGPU needs cargo, which was not found on the PATH\n\n"
            "hint: install Rust 1.88 or newer (https://rustup.rs, or your distribution's rustup)"
        )
    command = [cargo, "build", "--release", "--locked", "--manifest-path", str(ROOT / "Cargo.toml")]
    print("running", " ".join(command), flush=True)
    if subprocess.run(command, cwd=ROOT, check=False).returncode != 0:
        raise SystemExit("error: cargo could not build the native parts; its own words are above")
    target = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
    return ROOT / target / "release"


setup(cmdclass={"build_py": BuildWithCargo, "bdist_wheel": PlatformWheel})
