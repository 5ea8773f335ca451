"""The harness for public scripts: its list, its made-up data, how it runs one, and its comparison.

The scripts themselves are not in the project: `make wild SOURCES=…` runs them.
"""

from __future__ import annotations

import copy
import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

torch = pytest.importorskip("torch")
datasets = pytest.importorskip("torchvision.datasets")

from wild.compare import Comparison, as_table, compare, compare_script
from wild.deviations import Deviation, disagreements, read_deviations
from wild.events import first_difference
from wild.manifest import MANIFEST, Data, ManifestError, Script, read_manifest
from wild.one_run import result_of, run_script
from wild.prepare import collect_script
from wild.recipes import RECIPES, make


def test_the_list_is_valid_and_long_enough() -> None:
    manifest = read_manifest()
    assert len(manifest.scripts) >= 60
    assert len({script.repository for script in manifest.scripts}) >= 25


def test_every_recipe_is_used() -> None:
    used = {data.recipe for script in read_manifest().scripts for data in script.data}
    assert used == set(RECIPES)


LIST = """
[packages]
einops = "0.8.2"

[repositories]
"owner/name" = "0123456789012345678901234567890123456789"

[[script]]
name = "one"
repository = "owner/name"
path = "folder/train.py"
"""


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('"0123456789', '"v1', "is not a full commit"),
        ('repository = "owner/name"', 'repository = "owner/other"', "no commit is given"),
        ('path = "folder/train.py"', 'path = "train.py"\nfolder = "folder"', "is not below"),
        ('path = "folder/train.py"', 'path = "train.py"\nstep = 3', "unknown key step"),
        (
            'path = "folder/train.py"',
            'path = "train.py"\npackages = ["jax"]',
            "no version is given",
        ),
        (
            'path = "folder/train.py"',
            'path = "train.py"\ndata = [{ recipe = "imagenet", at = "x" }]',
            "there is no recipe imagenet",
        ),
        (
            'path = "folder/train.py"',
            'path = "train.py"\ndata = [{ recipe = "mnist", at = "../../x" }]',
            "is outside the run's folder",
        ),
    ],
)
def test_a_mistake_in_the_list_is_named(tmp_path: Path, before: str, after: str, said: str) -> None:
    assert before in LIST
    file = tmp_path / "scripts.toml"
    file.write_text(LIST.replace(before, after))
    with pytest.raises(ManifestError, match=said):
        read_manifest(file)


def test_a_repeated_name_is_a_mistake(tmp_path: Path) -> None:
    file = tmp_path / "scripts.toml"
    file.write_text(LIST + LIST[LIST.index("[[script]]") :])
    with pytest.raises(ManifestError, match="listed twice"):
        read_manifest(file)


SMALL: dict[str, dict[str, Any]] = {
    "mnist": {"train": 20, "test": 10},
    "cifar": {"train": 20, "test": 10},
    "pictures": {"count": 2},
    "picture-folders": {"each": 2},
    "masks": {"count": 2},
    "boxes": {"count": 2},
    "mini-imagenet": {"classes": 2, "each": 2},
    "text": {"lines": 3},
    "name-list": {"lines": 5},
    "tokens": {"count": 50},
    "token-pairs": {"lines": 2},
    "numbers": {"shape": [2, 3]},
    "several-numbers": {"arrays": {"one": [2], "other": []}},
    "numbers-by-name": {"names": ["one", "other"], "shape": [2]},
    "several-numbers-each": {"count": 2, "arrays": {"one": [2]}},
    "table": {"rows": 2, "columns": 3},
    "utterances": {"speakers": 2, "each": 2},
    "graphs": {"name": "MADE", "count": 3, "largest": 8},
    "written": {"content": "x"},
    "weights": {"model": "squeezenet1_1"},
    "layers": {"shapes": {"first": [4, 3, 1, 1]}},
    "shape-parts": {"train": 2, "test": 1, "points": 4},
    "point-clouds": {"classes": ["chair"], "each": 3, "points": 4},
    "enwik8": {"size": 1000},
    "language-model": {"layers": 1, "width": 16, "vocabulary": 50, "positions": 8},
}


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_a_recipe_makes_the_same_files_every_time(name: str, tmp_path: Path) -> None:
    for copy_of in ("one", "two"):
        make(name, tmp_path / copy_of / "data", SMALL[name])
    first = contents(tmp_path / "one")
    assert first
    assert first == contents(tmp_path / "two")


def test_torchvision_reads_made_up_mnist(tmp_path: Path) -> None:
    make("mnist", tmp_path, {"train": 30, "test": 10, "name": "FashionMNIST"})
    assert len(datasets.FashionMNIST(tmp_path, train=True)) == 30
    picture, label = datasets.FashionMNIST(tmp_path, train=False)[3]
    assert picture.size == (28, 28)
    assert label == 3


@pytest.mark.parametrize(("kind", "classes"), [("CIFAR10", 10), ("CIFAR100", 100)])
def test_torchvision_reads_made_up_cifar(
    tmp_path: Path, kind: str, classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    make("cifar", tmp_path, {"train": 203, "test": 10, "classes": classes})
    monkeypatch.setattr("torchvision.datasets.utils.check_md5", lambda *_, **__: True)
    data = getattr(datasets, kind)(tmp_path, train=True)
    assert len(data) == 203
    assert len(data.classes) == classes
    assert data[0][0].size == (32, 32)


def test_compressed_text_is_as_long_as_asked_for(tmp_path: Path) -> None:
    make("enwik8", tmp_path / "enwik8.gz", {"size": 12_345})
    assert len(gzip.decompress((tmp_path / "enwik8.gz").read_bytes())) == 12_345


def a_script(**changes: Any) -> Script:
    described: dict[str, Any] = {
        "name": "one",
        "repository": "owner/name",
        "commit": "0" * 40,
        "path": "folder/train.py",
        "folder": "folder",
        "files": ["folder"],
    }
    return Script(**{**described, **changes})


def a_bundle(folder: Path, source: str) -> Path:
    file = folder / "repositories/owner/name/folder/train.py"
    file.parent.mkdir(parents=True)
    file.write_text(source)
    return folder


def test_what_git_has_at_the_commit_is_collected(tmp_path: Path) -> None:
    clone = tmp_path / "owner/name"
    (clone / "folder").mkdir(parents=True)
    (clone / "folder/train.py").write_text("print(1)\n")
    (clone / "folder/picture.png").write_bytes(b"0")
    (clone / "elsewhere.py").write_text("")

    def git(*words: str) -> str:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        command = ["git", "-C", str(clone), *identity, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "first")
    script = a_script(commit=git("rev-parse", "HEAD"))
    (clone / "folder/train.py").write_text("print(2)\n")
    collect_script(script, tmp_path, tmp_path / "out")
    assert contents(tmp_path / "out") == {"owner/name/folder/train.py": b"print(1)\n"}
    # A file of another kind is taken if it is listed by itself.
    named = a_script(commit=script.commit, files=["folder", "folder/picture.png"])
    collect_script(named, tmp_path, tmp_path / "with-picture")
    assert "owner/name/folder/picture.png" in contents(tmp_path / "with-picture")
    with pytest.raises(SystemExit, match="has no folder/test.py"):
        collect_script(a_script(commit=script.commit, path="folder/test.py"), tmp_path, tmp_path)


def test_a_script_runs_in_its_folder_with_its_arguments_data_and_silent_modules(
    tmp_path: Path,
) -> None:
    source = """
import os, sys, random
import wandb
from wandb.sdk import Run
assert sys.argv[1:] == ["--epochs", "1"], sys.argv
assert open("words.txt").read() == "x"
assert os.environ["DATA"].endswith("/checkout/folder")
assert random.random() == random.Random(1).random()
wandb.init(project="x").log({"loss": 1})
figure, axes = wandb.subplots()
os.path.join(Run().dir, "x")
print("done")
sys.exit(3)
"""
    script = a_script(
        arguments=["--epochs", "1"],
        environment={"DATA": "{checkout}/folder"},
        silent=["wandb"],
        data=[Data("written", "folder/words.txt", {"content": "x"})],
    )
    run = run_script(script, a_bundle(tmp_path, source), [sys.executable], 60)
    assert run["exit_code"] == 3, run["output_end"]
    assert run["output_end"].strip() == "done"


def test_a_script_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    bundle = a_bundle(tmp_path, "import time\nwhile True: time.sleep(1)\n")
    run = run_script(a_script(), bundle, [sys.executable], 1)
    assert run["outcome"] == "timed out"


def test_a_script_is_ended_after_its_steps(tmp_path: Path) -> None:
    source = """
import torch
weight = torch.nn.Parameter(torch.zeros(1))
optimizer = torch.optim.SGD([weight], lr=0.1)
for step in range(10):
    optimizer.step()
    print(step)
"""
    run = run_script(a_script(steps=3), a_bundle(tmp_path, source), [sys.executable], 120)
    assert run["outcome"] == "used no card"
    assert run["output_end"].split() == ["0", "1"]


def process(allocated: int, reserved: int, steps: int = 5, ooms: int = 0) -> dict[str, Any]:
    card = {
        "card": 0,
        "peak_allocated_bytes": allocated,
        "peak_reserved_bytes": reserved,
        "out_of_memory": ooms,
    }
    return {"optimizer_steps": steps, "cards": [card]}


def result(*processes: dict[str, Any], code: int = 0, output: str = "") -> dict[str, Any]:
    return result_of(code, 1.0, list(processes), output)


REAL = result(process(1000, 2000))


@pytest.mark.parametrize(
    ("virtual", "verdict", "reason"),
    [
        (REAL, "equal", ""),
        (result(process(1001, 2000)), "differs", "allocated +1 bytes (+0.10%)"),
        (result(process(1000, 1900)), "differs", "reserved -100 bytes (-5.00%)"),
        (
            result(process(1000, 2000), process(1, 2)),
            "differs",
            "2 processes instead of 1",
        ),
        (
            result(code=1, output="Traceback\nValueError: no\nunknown  it failed"),
            "failed",
            "failed instead of completed: ValueError: no",
        ),
        (
            result(process(1000, 2000, ooms=1), code=1),
            "failed",
            "out of memory instead of completed: ",
        ),
        (None, "failed", "was not run on the virtual card"),
    ],
)
def test_a_run_is_equal_to_the_byte_or_the_difference_is_said(
    virtual: Any, verdict: str, reason: str
) -> None:
    found = compare_script("x", REAL, virtual)
    assert (found.verdict, found.reason) == (verdict, reason)


def test_another_number_of_steps_is_shown_and_makes_no_difference() -> None:
    found = compare_script("x", REAL, result(process(1000, 2000, steps=4)))
    assert (found.verdict, found.steps) == ("equal", "4 steps instead of 5")
    assert "(4 steps instead of 5)" in as_table([found])


def test_a_script_that_fails_on_the_real_card_is_not_counted() -> None:
    real = result(code=1, output="NameError: name 'x' is not defined\n")
    found = compare_script("x", real, real)
    assert found.verdict == "not measured"
    assert "NameError" in found.reason


def test_a_script_that_is_not_like_itself_is_compared_with_the_nearest_run() -> None:
    real = copy.deepcopy(REAL)
    real["other_runs"] = [{"outcome": "completed", "processes": [process(1000, 2200)]}]
    found = compare_script("x", real, result(process(1000, 2200)))
    assert found.verdict == "equal"
    assert found.is_unsteady


@pytest.mark.parametrize(
    ("reserved", "verdict"), [(2100, "between"), (2300, "differs"), (1900, "differs")]
)
def test_a_script_that_is_not_like_itself_may_lie_between_its_runs(
    reserved: int, verdict: str
) -> None:
    real = copy.deepcopy(REAL)
    real["other_runs"] = [{"outcome": "completed", "processes": [process(1000, 2200)]}]
    assert compare_script("x", real, result(process(1000, reserved))).verdict == verdict


@pytest.mark.parametrize(
    ("virtual", "said"),
    [
        ("S20 a1 a2 r1 f1 r2 f2", ""),
        ("S20 a1 a3 r1 f1 r2 f2", "asks for another size at event 1 of 2: a1 a2 | a1 a3"),
        (
            "S20 a1 a2 r2 f2 r1 f1",
            "gives memory back in another order at event 2 of 4: a1 a2 r1 r2 | a1 a2 r2 r1",
        ),
        (
            "S20 a1 S20 a2 r1 f1 r2 f2",
            "another segment at event 2 of 5: S20 a1 a2 r1 r2 | S20 a1 S20 a2 r1 r2",
        ),
        (
            "S20 a1 a2 r1 r2 f1 f2",
            "memory is free at another moment at event 4 of 7:"
            " S20 a1 a2 r1 f1 r2 f2 | S20 a1 a2 r1 r2 f1 f2",
        ),
    ],
)
def test_two_histories_part_where_the_first_event_differs(virtual: str, said: str) -> None:
    assert first_difference("S20 a1 a2 r1 f1 r2 f2", virtual) == said


def test_the_table_counts_verdicts() -> None:
    real = {"scripts": {"a": REAL, "b": REAL, "c": REAL}}
    virtual = {"scripts": {"a": REAL, "b": result(process(1001, 2000))}}
    assert as_table(compare(real, virtual)).splitlines()[-2:] == [
        "3 scripts: 1 equal, 0 between, 1 differs, 1 failed, 0 not measured",
        "1 of 3 whose runs on the real card are alike are equal",
    ]


def test_what_was_recorded_belongs_to_listed_scripts() -> None:
    listed = {script.name for script in read_manifest().scripts}
    for file in MANIFEST.parent.glob("*.json"):
        recorded = json.loads(file.read_text())["scripts"]
        assert set(recorded) <= listed
        ran = [run for run in recorded.values() if run["outcome"] == "completed"]
        assert len(ran) >= 60, f"{file.name} has few scripts"
        assert all(run["processes"] for run in ran)


KNOWN = {
    "x": Deviation("x", "search", "engines are timed", 0.01),
    "z": Deviation("z", "waits", "a loop waits for a value", None),
}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (Comparison("x", "differs", "reserved +1 bytes", 0.01), ""),
        (
            Comparison("x", "differs", "reserved +2 bytes", 0.02),
            "x is off by 2.00%, and search accounts for 1.00%: reserved +2 bytes",
        ),
        (
            Comparison("y", "differs", "reserved +1 bytes", 0.001),
            "y differs, and nothing says why: reserved +1 bytes",
        ),
        (Comparison("x", "equal"), "x is equal, and is listed as different"),
        # Equal to one of several runs that are not alike: it may be none of them the next time.
        (Comparison("x", "equal", is_unsteady=True), ""),
        (Comparison("y", "equal"), ""),
        (Comparison("z", "failed"), ""),
        (Comparison("z", "equal"), "z ends, and is listed as one that does not"),
    ],
)
def test_a_deviation_is_listed_with_its_reason_and_its_size(found: Comparison, said: str) -> None:
    assert disagreements([found], KNOWN) == ([said] if said else [])


def recorded(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((MANIFEST.parent / name).read_text())
    return content


def test_every_recorded_deviation_of_the_virtual_card_is_accounted_for() -> None:
    comparisons = compare(recorded("h200.json"), recorded("virtual_h200.json"))
    assert disagreements(comparisons, read_deviations()) == []


def test_the_reason_of_a_deviation_shows_in_what_was_recorded() -> None:
    comparisons = compare(recorded("h200.json"), recorded("virtual_h200.json"))
    found = {one.script: one for one in comparisons}
    for deviation in read_deviations().values():
        one = found[deviation.script]
        if deviation.because == "overflow":
            assert one.steps, f"{one.script} made as many steps on the real card"
        if deviation.because in ("addresses", "placement"):
            assert not one.steps
            assert not one.is_unsteady
