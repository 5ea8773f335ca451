"""Real checkpoints survive whatever a rehearsed script does with Python's own file functions."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from conftest import Rehearse, needs_torch

pytestmark = needs_torch

WRITES = {
    "an open file": "with open('best.pth', 'wb') as file: torch.save(weights, file)",
    "an open Path": "torch.save(weights, pathlib.Path('best.pth').open('wb'))",
    "a copy": "torch.save(weights, 'last.pth'); shutil.copyfile('last.pth', 'best.pth')",
    "a copy with its times": (
        "torch.save(weights, 'last.pth'); shutil.copy2('last.pth', 'best.pth')"
    ),
    "a move": "torch.save(weights, 'last.pth'); shutil.move('last.pth', 'best.pth')",
    "a scripted model": "torch.jit.script(torch.nn.Linear(2, 2)).save('best.pth')",
    "torch.jit.save": "torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), 'best.pth')",
    "a deletion and a new file": "os.remove('best.pth'); torch.save(weights, 'best.pth')",
    "a deleted Path": "pathlib.Path('best.pth').unlink()",
    "a rename": "os.rename('best.pth', 'previous.pth'); torch.save(weights, 'best.pth')",
    "a renamed Path": "pathlib.Path('best.pth').rename('previous.pth')",
}

SCRIPT = """
import os, pathlib, pickle, shutil, torch
# As with a card in use, which these tests do without.
torch.cuda.is_initialized = lambda: True
torch.cuda._is_in_bad_fork = lambda: True
weights = torch.ones(3)
"""


def make_real(path: Path) -> None:
    """A file that was there long before the rehearsal."""
    path.parent.mkdir(exist_ok=True)
    path.write_text("real")
    os.utime(path, (1, 1))


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_a_real_checkpoint_survives(rehearse: Rehearse, tmp_path: Path, write: str) -> None:
    make_real(tmp_path / "best.pth")
    done = rehearse(SCRIPT + write)
    assert done.code == 0, done.stderr
    assert (tmp_path / "best.pth").read_text() == "real"
    assert (tmp_path / "best.pth").stat().st_mtime == 1
    assert sorted(path.name for path in tmp_path.glob("*.pth")) == ["best.pth"]
    assert not any("guarding" in note for note in done.report["notes"]), done.report["notes"]


def test_what_was_written_instead_is_read_back_under_its_name(
    rehearse: Rehearse, tmp_path: Path
) -> None:
    make_real(tmp_path / "best.pth")
    make_real(tmp_path / "last.pkl")
    done = rehearse(
        SCRIPT
        + """
with open("last.pkl", "wb") as file:
    pickle.dump(5, file)
print(pickle.load(open("last.pkl", "rb")))
torch.save(torch.ones(1), "new.pth")
shutil.copy("new.pth", "best.pth")
print(torch.load("best.pth"))
"""
    )
    assert done.stdout.split() == ["5", "tensor([1.])"], done.stderr
    assert (tmp_path / "last.pkl").read_text() == "real"


def test_a_renamed_real_checkpoint_is_found_under_its_new_name(
    rehearse: Rehearse, tmp_path: Path
) -> None:
    make_real(tmp_path / "last.pth")
    make_real(tmp_path / "older.pth")
    done = rehearse(
        SCRIPT
        + """
os.replace("last.pth", "older.pth")
print(open("older.pth").read())
os.replace("older.pth", "oldest.pth")
print(open("oldest.pth").read())
torch.save(weights, "oldest.pth")
print(torch.load("oldest.pth").sum().item())
"""
    )
    assert done.stdout.split() == ["real", "real", "3.0"], done.stderr
    assert [path.read_text() for path in tmp_path.glob("*.pth")] == ["real", "real"]


def test_a_folder_of_real_checkpoints_is_not_deleted_and_can_be_made_anew(
    rehearse: Rehearse, tmp_path: Path
) -> None:
    make_real(tmp_path / "output" / "model.safetensors")
    done = rehearse(
        SCRIPT
        + """
if os.path.exists("output"):
    shutil.rmtree("output")
os.makedirs("output")
torch.save(weights, "output/model.pt")
"""
    )
    assert done.code == 0, done.stderr
    assert os.listdir(tmp_path / "output") == ["model.safetensors"]
    note = f"a real checkpoint was not deleted: {tmp_path / 'output'}"
    assert note in done.report["notes"]


def test_a_real_checkpoint_can_be_deleted_again_but_not_for_ever(
    rehearse: Rehearse, tmp_path: Path
) -> None:
    make_real(tmp_path / "best.pth")
    make_real(tmp_path / "old" / "model.pt")
    done = rehearse(
        SCRIPT
        + """
for save in range(3):
    shutil.rmtree("old", ignore_errors=True)
    os.remove("best.pth")
print("saved")
while os.path.exists("best.pth"):
    os.remove("best.pth")
"""
    )
    assert done.stdout.strip() == "saved", done.stderr
    assert "PermissionError" in done.stderr
    assert (tmp_path / "best.pth").exists()
    assert (tmp_path / "old" / "model.pt").exists()


def test_what_describes_real_weights_is_not_replaced(rehearse: Rehearse, tmp_path: Path) -> None:
    make_real(tmp_path / "model" / "model.safetensors")
    make_real(tmp_path / "model" / "config.json")
    make_real(tmp_path / "settings.json")
    rehearse(
        """
        import torch
        for name in ("model/config.json", "model/trainer_state.json", "settings.json"):
            open(name, "w").write("changed")
        """
    )
    assert not (tmp_path / "model" / "trainer_state.json").exists()
    assert (tmp_path / "model" / "config.json").read_text() == "real"
    assert (tmp_path / "settings.json").read_text() == "changed"


def test_data_prepared_before_the_card_is_used_stays(rehearse: Rehearse, tmp_path: Path) -> None:
    rehearse(
        """
        import pickle, torch
        pickle.dump([1], open("vocabulary.pkl", "wb"))
        torch.cuda.is_initialized = lambda: True
        torch.cuda._is_in_bad_fork = lambda: True
        pickle.dump([0.0], open("features.pkl", "wb"))
        """
    )
    assert (tmp_path / "vocabulary.pkl").exists()
    assert not (tmp_path / "features.pkl").exists()


def test_files_of_the_rehearsal_can_be_deleted_and_real_ones_moved_into_its_folders(
    rehearse: Rehearse, tmp_path: Path
) -> None:
    make_real(tmp_path / "notes.txt")
    done = rehearse(
        SCRIPT
        + """
os.makedirs("output")
torch.save(weights, "output/model.pt")
shutil.move("notes.txt", "output/notes.txt")
torch.save(weights, "model.pt")
os.remove("model.pt")
print(os.path.exists("model.pt"))
"""
    )
    assert done.stdout.strip() == "False", done.stderr
    assert os.listdir(tmp_path / "output") == ["notes.txt"]


def test_a_curve_of_zeros_does_not_stay_among_the_users_runs(
    rehearse: Rehearse, tmp_path: Path
) -> None:
    make_real(tmp_path / "runs" / "events.out.tfevents.1.host")
    done = rehearse(
        """
        import os, torch
        open("runs/events.out.tfevents.2.host", "ab").write(b"loss")
        os.makedirs("logs/version_0")
        for name in ("version_0/hparams.yaml", "version_0/metrics.csv", "metrics.csv"):
            open("logs/" + name, "w").write("0")
        """
    )
    assert os.listdir(tmp_path / "runs") == ["events.out.tfevents.1.host"]
    # Lightning's; a file of that name elsewhere may be anything.
    assert os.listdir(tmp_path / "logs") == ["metrics.csv"]
    listed = (done.run_dir / "written-files.jsonl").read_text().splitlines()
    assert {"path": str(tmp_path / "logs"), "is_folder": False} in map(json.loads, listed)
