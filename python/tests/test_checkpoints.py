"""Checkpoints of zeros neither replace real ones nor stay."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from conftest import Rehearse, needs_torch

from ghostgpu.agent.files.checkpoint_paths import CheckpointPaths
from ghostgpu.agent.shared_numbers import RUN_FOLDER_PREFIX, WRITTEN_FILES

pytestmark = needs_torch

SAVES = {
    "torch.save": "torch.save({'w': torch.ones(3)}, 'model.pt')",
    "torch.save by keyword": "torch.save(obj={'w': torch.ones(3)}, f='model.pt')",
    "torch.save to a Path": "torch.save({'w': torch.ones(3)}, pathlib.Path('model.pt'))",
    "temporary name, then replace": (
        "torch.save({'w': torch.ones(3)}, 'model.tmp'); os.replace('model.tmp', 'model.pt')"
    ),
}


@pytest.mark.parametrize("save", SAVES.values(), ids=SAVES.keys())
def test_an_existing_checkpoint_is_left_alone_and_the_new_one_can_be_read_back(
    rehearse: Rehearse, tmp_path: Path, save: str
) -> None:
    (tmp_path / "model.pt").write_text("real")
    done = rehearse(
        f"import os, pathlib, torch\n{save}\nprint(torch.load('model.pt')['w'].tolist())"
    )
    assert done.stdout.strip() == "[1.0, 1.0, 1.0]", done.stderr
    assert (tmp_path / "model.pt").read_text() == "real"
    assert not (tmp_path / "model.tmp").exists()
    assert "checkpoints of a rehearsal hold zeros" in done.stderr


@pytest.mark.parametrize("save", SAVES.values(), ids=SAVES.keys())
def test_a_new_checkpoint_is_listed_before_it_is_written_and_deleted_at_the_end(
    rehearse: Rehearse, tmp_path: Path, save: str
) -> None:
    done = rehearse(f"import os, pathlib, torch\n{save}\nprint(os.path.getsize('model.pt') > 0)")
    assert done.stdout.strip() == "True"
    assert not (tmp_path / "model.pt").exists()
    lines = (done.run_dir / "written-files.jsonl").read_text().splitlines()
    listed = [json.loads(line) for line in lines]
    assert str(tmp_path / "model.pt") in [each["path"] for each in listed]


def test_checkpoints_are_kept_when_that_is_asked_for(rehearse: Rehearse, tmp_path: Path) -> None:
    (tmp_path / "model.pt").write_text("real")
    done = rehearse(
        "import torch; torch.save(torch.ones(3), 'model.pt'); torch.save(torch.ones(3), 'new.pt')",
        keep_checkpoints=True,
    )
    assert (tmp_path / "model.pt").read_bytes() != b"real"
    assert (tmp_path / "new.pt").exists()
    assert not any("checkpoint" in note for note in done.report["notes"])


def test_deleting_a_redirected_checkpoint_leaves_the_real_one(
    rehearse: Rehearse, tmp_path: Path
) -> None:
    (tmp_path / "model.pt").write_text("real")
    rehearse("import os, torch; torch.save(torch.ones(3), 'model.pt'); os.remove('model.pt')")
    assert (tmp_path / "model.pt").read_text() == "real"


def test_a_folder_that_the_rehearsal_made_for_a_checkpoint_goes_with_it(
    rehearse: Rehearse, tmp_path: Path
) -> None:
    rehearse(
        """
        import os, torch
        os.makedirs("out/checkpoint-3")
        open("out/checkpoint-3/trainer_state.json", "w").write("{}")
        torch.save(torch.ones(3), "out/checkpoint-3/model.pt")
        """
    )
    assert (tmp_path / "out").exists()
    assert not (tmp_path / "out" / "checkpoint-3").exists()


def test_an_exit_without_clean_up_leaves_the_list_for_the_command_line(
    rehearse: Rehearse, tmp_path: Path
) -> None:
    done = rehearse(
        "import os, signal, torch; torch.save(torch.ones(3), 'model.pt'); os.kill(os.getpid(), 9)"
    )
    assert done.code == -9
    assert (tmp_path / "model.pt").exists()
    assert str(tmp_path / "model.pt") in (done.run_dir / "written-files.jsonl").read_text()


def test_safetensors_files_are_guarded_too(rehearse: Rehearse, tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    (tmp_path / "model.safetensors").write_text("real")
    done = rehearse(
        """
        import torch
        from safetensors.torch import load_file, save_file
        save_file({"w": torch.ones(2)}, "model.safetensors")
        save_file({"w": torch.ones(2)}, "new.safetensors")
        print(load_file("model.safetensors")["w"].tolist())
        """
    )
    assert done.stdout.strip() == "[1.0, 1.0]", done.stderr
    assert (tmp_path / "model.safetensors").read_text() == "real"
    assert not (tmp_path / "new.safetensors").exists()


def test_a_distributed_checkpoint_goes_elsewhere_when_there_is_a_real_one(
    rehearse: Rehearse, tmp_path: Path
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / ".metadata").write_text("real")
    done = rehearse(
        """
        import torch
        import torch.distributed.checkpoint as dcp
        for folder in ("real", "new"):
            dcp.save({"w": torch.ones(2)}, checkpoint_id=folder, no_dist=True)
            state = {"w": torch.zeros(2)}
            dcp.load(state, checkpoint_id=folder, no_dist=True)
            print(state["w"].tolist())
        """
    )
    assert done.stdout.split("\n")[:2] == ["[1.0, 1.0]"] * 2, done.stderr
    assert os.listdir(tmp_path / "real") == [".metadata"]
    assert not (tmp_path / "new").exists()


def test_a_distributed_checkpoint_in_a_folder_of_the_users_takes_nothing_away(
    rehearse: Rehearse, tmp_path: Path
) -> None:
    (tmp_path / "output").mkdir()
    (tmp_path / "output" / "results.csv").write_text("real")
    rehearse(
        """
        import torch
        import torch.distributed.checkpoint as dcp
        dcp.save({"w": torch.ones(2)}, checkpoint_id="output", no_dist=True)
        """
    )
    assert os.listdir(tmp_path / "output") == ["results.csv"]


def test_of_two_rehearsals_one_has_the_name_and_the_other_goes_elsewhere(tmp_path: Path) -> None:
    runs = [tmp_path / f"{RUN_FOLDER_PREFIX}{number}" for number in range(2)]
    for run in runs:
        run.mkdir()
    first, second = (CheckpointPaths(str(run), started_at=0) for run in runs)
    wanted = str(tmp_path / "model.pt")
    # Neither has written anything yet.
    assert first.for_writing(wanted) == wanted
    assert second.for_writing(wanted).startswith(str(runs[1]))
    second.delete_made()
    assert os.path.exists(wanted)
    first.delete_made()
    assert not os.path.exists(wanted)


def test_what_a_process_wrote_stays_for_the_others_of_its_rehearsal(tmp_path: Path) -> None:
    run = tmp_path / f"{RUN_FOLDER_PREFIX}0"
    (run / "fork-1").mkdir(parents=True)
    wanted = tmp_path / "model.pt"
    CheckpointPaths(str(run), started_at=0).for_writing(wanted)
    listed = run / WRITTEN_FILES
    # A rank that runs at the same time must not be written over; one that has ended may be.
    alongside = CheckpointPaths(str(run), started_at=0)
    alongside.clean_up()
    assert alongside.for_writing(wanted).startswith(str(run))
    ended = subprocess.run(["sh", "-c", "echo $$"], capture_output=True, text=True, check=True)
    listed.write_text(listed.read_text().replace(str(os.getpid()), ended.stdout.strip()))
    later = CheckpointPaths(str(run), started_at=0)
    assert later.for_writing(wanted) == str(wanted)
    later.clean_up()
    assert wanted.exists()
    of_fork = CheckpointPaths(str(run / "fork-1"), started_at=0)
    of_fork.for_writing(tmp_path / "other.pt")
    of_fork.clean_up()
    assert not (tmp_path / "other.pt").exists()


def test_a_folder_stays_while_a_rehearsal_that_runs_around_it_has_not_ended(tmp_path: Path) -> None:
    run, other = (tmp_path / f"{RUN_FOLDER_PREFIX}{name}" for name in ("own", "other"))
    other_list = other / WRITTEN_FILES
    for folder in (run, other):
        folder.mkdir()
    other_list.write_text(json.dumps({"path": str(tmp_path), "is_workplace": True}) + "\n")
    paths = CheckpointPaths(str(run), started_at=0)

    def save() -> Path:
        folder = tmp_path / "out"
        folder.mkdir()
        paths.note_new_folder(folder)
        Path(paths.for_writing(folder / "model.pt")).write_text("x")
        paths.delete_made()
        return folder

    folder = save()
    assert os.listdir(folder) == []
    folder.rmdir()
    other_list.unlink()  # as the command line does when that rehearsal has ended
    assert not save().exists()


def test_a_name_that_the_script_deleted_belongs_to_whoever_makes_it_anew(
    rehearse: Rehearse, tmp_path: Path
) -> None:
    rehearse(
        """
        import os, shutil, torch
        os.makedirs("old")
        for name in ("model.pt", "old/model.pt"):
            torch.save({"w": torch.ones(2)}, name)
        os.remove("model.pt")
        shutil.rmtree("old")
        # Somebody else's, past the agent.
        os.system("mkdir old; echo theirs > old/model.pt; echo theirs > model.pt")
        """
    )
    for name in ("model.pt", "old/model.pt"):
        assert (tmp_path / name).read_text() == "theirs\n"
