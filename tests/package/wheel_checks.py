"""The wheel and the source distribution that `make wheel` built install without cargo, and work.

Not collected by name, as they have to be built first: `make wheel` builds them and runs this.
`GHOSTGPU_DIST` names their folder.
"""

from __future__ import annotations

import os
import shutil
import tarfile
import zipfile
from pathlib import Path

import pytest
from installed import ALLOCATES_ONE_GIB, TEST_PYTHONS, empty_environment, run

DIST = Path(os.environ["GHOSTGPU_DIST"])
NATIVE = {
    "ghostgpu",
    "ghostgpu-cudnn",
    "libghostgpu.so",
    "libghostgpu_oracle_companions.so",
    "libghostgpu_calibrator.so",
}


def the_only(pattern: str) -> Path:
    (file,) = DIST.glob(pattern)
    return file


@pytest.fixture(scope="module")
def path_without_cargo(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with what pip and the command need from a system, and no more."""
    programs = tmp_path_factory.mktemp("programs")
    for name in ("sh", "env", "uname", "ldd"):
        found = shutil.which(name)
        assert found is not None, name
        (programs / name).symlink_to(found)
    assert shutil.which("cargo", path=str(programs)) is None
    return str(programs)


@pytest.fixture(scope="module", params=["ghostgpu-*.whl", "ghostgpu-*.tar.gz"])
def environment(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    path_without_cargo: str,
) -> Path:
    folder = empty_environment(tmp_path_factory.mktemp("installed") / "environment")
    words = ("install", "--quiet", "--disable-pip-version-check", "--no-deps")
    done = run(folder, "pip", *words, str(the_only(request.param)), PATH=path_without_cargo)
    assert done.returncode == 0, done.stderr
    return folder


def test_the_wheel_is_for_old_systems_and_every_python() -> None:
    name = the_only("*.whl").name
    assert "-py3-none-" in name
    assert name.endswith("manylinux_2_17_x86_64.whl")


def test_the_wheel_has_every_native_part() -> None:
    names = zipfile.ZipFile(the_only("*.whl")).namelist()
    found = {Path(name) for name in names if not name.endswith("/")}
    assert {path.name for path in found if path.parent.name == "_native"} == NATIVE


def test_the_source_distribution_has_sources_and_built_parts() -> None:
    with tarfile.open(the_only("*.tar.gz")) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"prebuilt/linux-x86_64/{name}" for name in NATIVE} <= names
    assert {"Cargo.toml", "Cargo.lock", "crates/cli/src/main.rs", "README.zh-CN.md"} <= names


def test_it_knows_its_cards(environment: Path, path_without_cargo: str) -> None:
    done = run(environment, "ghostgpu", "gpus", "3060", PATH=path_without_cargo)
    assert done.returncode == 0, done.stderr
    assert "RTX 3060" in done.stdout


def test_it_rehearses_with_another_environments_torch(
    environment: Path, path_without_cargo: str, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(ALLOCATES_ONE_GIB)
    words = ("run", "--verbose", "--gpu", "h200", "--python", TEST_PYTHONS[0], str(script))
    done = run(environment, "ghostgpu", *words, PATH=path_without_cargo)
    assert done.returncode == 0, done.stderr
    assert "1,073,741,824 bytes" in done.stdout


def test_it_asks_cudnn(environment: Path, path_without_cargo: str, tmp_path: Path) -> None:
    """A convolution's workspace comes from the program beside the command."""
    script = tmp_path / "train.py"
    script.write_text(
        "import torch\n"
        "torch.nn.Conv2d(64, 64, 3).cuda()(torch.zeros(32, 64, 56, 56, device='cuda'))\n"
    )
    words = ("run", "--verbose", "--gpu", "h200", "--python", TEST_PYTHONS[0], str(script))
    cache = str(tmp_path / "cache")
    done = run(environment, "ghostgpu", *words, PATH=path_without_cargo, XDG_CACHE_HOME=cache)
    assert done.returncode == 0, done.stderr
    assert list(Path(cache).rglob("*")), "cuDNN's answers are kept"
    assert "modelled" not in done.stdout
