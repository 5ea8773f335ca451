"""What earlier replays measured is used again only while nothing that decides them has changed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "harness"))

import replay_cache
from replay_cache import KEPT_BUILDS, ReplayCache, open_cache


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A build, an agent, a harness and a recorded case, all made up."""
    built = ("built/ghostgpu", "built/libghostgpu.so", "built/ghostgpu-cudnn", "agent/hooks.py")
    harness = ("harness/replay_cache.py", "harness/cases/vision.py")
    for name in (*built, *harness, "real/cases/vgg16.json", "real/events/vgg16.json.gz"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    for name in ("ghostgpu", "ghostgpu-cudnn"):
        (tmp_path / "built" / name).chmod(0o755)
    monkeypatch.setenv("GHOSTGPU_TEST_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("GHOSTGPU_LIBRARY", raising=False)
    monkeypatch.setattr(replay_cache, "__file__", str(tmp_path / "harness/replay_cache.py"))
    monkeypatch.setattr(replay_cache, "versions", lambda: {"torch": "2.11.0", "cudnn": "9.1"})
    return tmp_path


def cache_of(world: Path) -> ReplayCache:
    cache = open_cache(world / "built/ghostgpu", world / "agent", world / "real")
    assert cache is not None
    return cache


def keep_one(world: Path) -> None:
    (world / "results/cases").mkdir(parents=True)
    (world / "results/events").mkdir()
    (world / "results/cases/vgg16.json").write_text("measured")
    (world / "results/events/vgg16.json.gz").write_text("events")
    cache_of(world).keep("vgg16", world / "results")


def test_what_was_kept_is_restored_and_the_rest_is_named(world: Path) -> None:
    keep_one(world)
    assert cache_of(world).restore(["vgg16", "unet"], world / "again") == ["unet"]
    assert (world / "again/cases/vgg16.json").read_text() == "measured"
    assert (world / "again/events/vgg16.json.gz").read_text() == "events"


def changed(name: str) -> Callable[[Path, pytest.MonkeyPatch], object]:
    return lambda world, patch: (world / name).write_text("another")


def another_version(package: str) -> Callable[[Path, pytest.MonkeyPatch], object]:
    versions = {"torch": "2.11.0", "cudnn": "9.1", package: "another"}
    return lambda world, patch: patch.setattr(replay_cache, "versions", lambda: versions)


def another_library(world: Path, patch: pytest.MonkeyPatch) -> None:
    (world / "other.so").write_text("another")
    patch.setenv("GHOSTGPU_LIBRARY", str(world / "other.so"))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(changed("built/libghostgpu.so"), id="the library"),
        pytest.param(changed("built/ghostgpu"), id="the command"),
        pytest.param(changed("built/ghostgpu-cudnn"), id="the program that asks cuDNN"),
        pytest.param(changed("agent/hooks.py"), id="the agent"),
        pytest.param(changed("agent/new.py"), id="a new file of the agent"),
        pytest.param(changed("harness/cases/vision.py"), id="the case's definition"),
        pytest.param(changed("real/cases/vgg16.json"), id="what was recorded"),
        pytest.param(changed("real/events/vgg16.json.gz"), id="the recorded events"),
        pytest.param(another_library, id="a library that is named"),
        pytest.param(another_version("torch"), id="torch"),
        pytest.param(another_version("cudnn"), id="cuDNN"),
        pytest.param(another_version("numpy"), id="a new package"),
    ],
)
def test_nothing_is_restored_after_a_change(
    world: Path,
    change: Callable[[Path, pytest.MonkeyPatch], object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keep_one(world)
    change(world, monkeypatch)
    assert cache_of(world).restore(["vgg16"], world / "again") == ["vgg16"]
    assert not (world / "again").exists()


def test_the_versions_are_those_that_are_installed() -> None:
    found = replay_cache.versions()
    assert found["pytest"] == pytest.__version__
    assert {"python", "machine"} <= set(found)


def test_results_of_old_builds_are_removed(world: Path) -> None:
    for build in range(KEPT_BUILDS + 3):
        (world / "built/libghostgpu.so").write_text(f"build {build}")
        cache_of(world)
    assert len(list((world / "cache/replays").iterdir())) == KEPT_BUILDS


@pytest.mark.parametrize("variable", [("CI", "true"), ("GHOSTGPU_TEST_CACHE", "")])
def test_continuous_integration_keeps_and_takes_nothing(
    world: Path, monkeypatch: pytest.MonkeyPatch, variable: tuple[str, str]
) -> None:
    monkeypatch.setenv(*variable)
    assert open_cache(world / "built/ghostgpu", world / "agent", world / "real") is None
