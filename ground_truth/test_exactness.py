"""Replays measured cases on the virtual H200 and compares them with the real card, byte by byte.

All measured cases, or their sentinels where `GHOSTGPU_TEST_SCOPE` is `short`, run under one
`ghostgpu run`, each in a process of its own. `GHOSTGPU_COMMAND` names another program than the one
of this checkout, and `GROUND_TRUTH_REPLAY` a folder with results of an earlier replay, which are
then compared instead of running everything again.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
HARNESS = HERE / "harness"
REAL = HERE / "h200"
sys.path.insert(0, str(HARNESS))

from archive import read_events, read_results
from compare import compare_case, verdict
from deviations import read_deviations
from repetition import further_attempts, read_not_deterministic
from replay_cache import ReplayCache, open_cache
from scope import is_short, one_per_family
from sentinels import sentinels

MEASURED = {
    name: result for name, result in read_results(REAL).items() if result["outcome"] != "failed"
}
KNOWN = read_deviations(HERE / "known_deviations.toml")
NOT_DETERMINISTIC = read_not_deterministic(HERE / "not_deterministic.toml")
REPLAYED = sentinels(MEASURED, KNOWN) if is_short() else list(MEASURED)
LARGEST = REAL / "largest_batch.json"
#: Whose memory it is does not matter here, and `test_categories.py` shows that recording it
#: changes nothing.
PLAIN = ("--no-breakdown",)


def ghostgpu(*options: str) -> list[str]:
    """The command that rehearses a program on the virtual H200, with these options."""
    words = [program(), "run", "--gpu", "h200", "--steps", "0", "--no-retry", *options]
    return [*words, "--", sys.executable]


def program() -> str:
    """The `ghostgpu` to test."""
    checkout = HERE.parent / "target" / "release" / "ghostgpu"
    found = os.environ.get("GHOSTGPU_COMMAND") or (
        str(checkout) if checkout.exists() else shutil.which("ghostgpu")
    )
    if not found:
        pytest.skip("no ghostgpu program: build it, or name one in GHOSTGPU_COMMAND")
    pytest.importorskip("torch")
    return found


def assert_no_agent_fault(answer: Path) -> None:
    """An answer that rests on a broken agent proves nothing (`python/ghostgpu/agent/report.py`)."""
    if answer.exists():
        assumptions = json.loads(answer.read_text())["assumptions"]
        assert not [each for each in assumptions if each.startswith("GhostGPU's agent ")]


def replay_short_scripts(name: str, folder: Path) -> dict[str, Any]:
    """What `harness/NAME.py` measures on the virtual H200."""
    answer = folder / "answer.json"
    options = (*PLAIN, "--json", str(answer))
    command = [*ghostgpu(*options), str(HARNESS / f"{name}.py"), "--out", str(folder)]
    command += ["--jobs", str(os.cpu_count() or 1)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert_no_agent_fault(answer)
    written = folder / f"{name}.json"
    assert written.exists(), done.stdout[-2000:] + done.stderr[-2000:]
    figures: dict[str, Any] = json.loads(written.read_text())[name]
    return figures


@pytest.fixture(scope="session")
def kept() -> ReplayCache | None:
    """What earlier runs measured with the same build, if anything may be taken from them."""
    agent = os.environ.get("GHOSTGPU_AGENT_DIR") or HERE.parent / "python" / "ghostgpu" / "agent"
    return open_cache(Path(program()), Path(agent), REAL)


@pytest.fixture(scope="session")
def replay(tmp_path_factory: pytest.TempPathFactory, kept: ReplayCache | None) -> Path:
    given = os.environ.get("GROUND_TRUTH_REPLAY")
    if given:
        return Path(given)
    folder = tmp_path_factory.mktemp("replay")
    waiting = kept.restore(REPLAYED, folder) if kept else REPLAYED
    if not waiting:
        return folder
    names = folder / "names.txt"
    names.write_text("\n".join(waiting))
    answer = folder / "answer.json"
    options = (*PLAIN, "--json", str(answer))
    command = [*ghostgpu(*options), str(HARNESS / "run_all.py"), "--fork", "--out", str(folder)]
    command += ["--names", str(names), "--jobs", str(os.cpu_count() or 1)]
    # Compiling takes a minute or more on a small machine.
    command += ["--case-limit", "400"]
    # Cases that fail say so in their own results; the program's own exit code adds nothing.
    with open(folder / "replay.log", "wb") as log:
        subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False)
    assert_no_agent_fault(answer)
    return folder


def second_chance(name: str, folder: Path) -> str | None:
    """What is wrong with a case when it is replayed once more, alone."""
    folder.mkdir(exist_ok=True)
    words = ["--out", str(folder), "--only", name]
    command = [*ghostgpu(*PLAIN), str(HARNESS / "run_all.py"), *words]
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    result = read_results(folder).get(name)
    comparison = compare_case(
        name, MEASURED[name], result, read_events(REAL, name), read_events(folder, name)
    )
    return verdict(comparison, KNOWN.get(name))


@cache
def replayed(folder: Path) -> dict[str, dict[str, Any]]:
    return read_results(folder)


def test_there_are_at_least_eighty_measured_cases() -> None:
    assert len(MEASURED) >= 80


def test_no_measured_case_has_changed_its_meaning() -> None:
    pytest.importorskip("torch")
    import cases  # noqa: F401
    from case import CASES

    changed = [n for n, r in MEASURED.items() if CASES[n].definition() != r["definition"]]
    assert not changed


@pytest.mark.parametrize("name", REPLAYED)
def test_the_virtual_card_uses_the_same_memory(
    name: str, replay: Path, tmp_path: Path, kept: ReplayCache | None
) -> None:
    comparison = compare_case(
        name,
        MEASURED[name],
        replayed(replay).get(name),
        read_events(REAL, name),
        read_events(replay, name),
    )
    problem = verdict(comparison, KNOWN.get(name))
    attempts = further_attempts(name, MEASURED[name], NOT_DETERMINISTIC)
    for attempt in range(attempts):
        problem = problem and second_chance(name, tmp_path / str(attempt))
    if kept and problem is None and not attempts:
        kept.keep(name, replay)
    assert problem is None, f"{problem}\n{comparison.events}"


def test_known_deviations_name_measured_cases_and_say_why() -> None:
    unknown = [name for name in KNOWN if name not in MEASURED]
    assert not unknown
    assert all(len(entry.reason.split()) >= 3 for entry in KNOWN.values())


def test_the_largest_batch_under_a_cap_is_the_real_cards(tmp_path: Path) -> None:
    real = {s["case"]: s for s in json.loads(LARGEST.read_text())["searches"]}
    assert len(real) >= 10
    names = one_per_family(list(real), MEASURED) if is_short() else list(real)
    out = tmp_path / "largest_batch.json"
    command = [*ghostgpu(*PLAIN), str(HARNESS / "largest_batch.py"), "--out", str(out)]
    command += ["--limit", "600"]
    command += ["--near", str(LARGEST), *(word for name in names for word in ("--only", name))]
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    virtual = {s["case"]: s for s in json.loads(out.read_text())["searches"]}
    expected = {name: real[name]["largest_batch"] for name in names}
    found = {name: search["largest_batch"] for name, search in virtual.items()}
    assert found == expected
