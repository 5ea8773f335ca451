"""Consecutive processes each find the card free; simultaneous processes share it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from conftest import GIB, MIB, PROGRAM, PYTHONS, Answered, Rehearse

HOLD = """
import os, signal, sys, time, torch
held = torch.zeros(int(sys.argv[1]) << 20, dtype=torch.uint8, device="cuda")
optimizer = torch.optim.SGD([torch.zeros(4, device="cuda", requires_grad=True)], lr=0.1)
for _ in range(int(sys.argv[2])):
    optimizer.step()
if "killed" in sys.argv:
    os.kill(os.getpid(), signal.SIGKILL)
"""

CONTEXT_BYTES = GIB
"""More than the context and the libraries of one process take on any card."""


def in_a_shell(rehearse: Rehearse, line: str, *options: str) -> Answered:
    return rehearse(HOLD, *options, command=("bash", "-c", line.replace("python", PYTHONS[0])))


def test_processes_one_after_the_other_take_turns(rehearse_reference: Rehearse) -> None:
    line = "cp train.py large.py; python train.py 900 1 && python large.py 3000 2"
    line += " && python train.py 900 1"
    done = in_a_shell(rehearse_reference, line).expect(0)
    assert 3000 * MIB < done["peak_device_bytes"] < 3000 * MIB + CONTEXT_BYTES
    assert done["devices"][0]["other_processes_bytes"] == 0
    assert done["steps"] == 2
    assert any(
        "large.py is shown, the largest of 3 processes" in each for each in done["assumptions"]
    )


def test_three_of_them_fit_where_two_at_once_would_not(rehearse_reference: Rehearse) -> None:
    line = "python train.py 3000 1 && python train.py 3000 1 && python train.py 3000 1"
    done = in_a_shell(rehearse_reference, line, "--gpu", "3060", "--memory", "5GiB").expect(0)
    assert done["fits"] is True


def test_a_killed_process_gives_its_memory_back(rehearse_reference: Rehearse) -> None:
    line = "python train.py 3000 1 killed; python train.py 2500 1"
    done = in_a_shell(rehearse_reference, line, "--gpu", "3060", "--memory", "5GiB").expect(0)
    assert 3000 * MIB < done["peak_device_bytes"] < 3000 * MIB + CONTEXT_BYTES
    assert any("(was it killed?)" in each for each in done["assumptions"])
    parts = done["breakdown"]["cards"][0]["at_peak"]["parts"]
    assert parts["other_processes"] == 0


def test_a_process_beside_another_adds_up_and_is_a_row_of_the_breakdown(
    rehearse_reference: Rehearse,
) -> None:
    done = rehearse_reference(
        HOLD
        + """
import subprocess
if "alone" not in sys.argv:
    subprocess.run([sys.executable, "train.py", "500", "1", "alone"], check=True)
    later = torch.zeros(100 << 20, dtype=torch.uint8, device="cuda")
""",
        "--verbose",
        command=(PYTHONS[0], "train.py", "2000", "1"),
    ).expect(0)
    device = done["devices"][0]
    others = device["other_processes_bytes"]
    assert 500 * MIB < others < 500 * MIB + CONTEXT_BYTES
    assert done["peak_device_bytes"] > 2500 * MIB
    accounts = done["breakdown"]["cards"][0]["at_peak"]
    assert accounts["parts"]["other_processes"] == others
    assert sum(accounts["parts"].values()) == accounts["on_card_bytes"]
    assert "other processes" in done.stdout


SAVING = """
import os, time, torch
model = torch.nn.Linear(64, 64).cuda()
held = torch.zeros(500 << 20, dtype=torch.uint8, device="cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
mine = f"here-{os.getpid()}"
open(mine, "w").close()
while sum(name.startswith("here-") for name in os.listdir()) < 2:
    time.sleep(0.01)
for step in range(40):
    model(torch.zeros(4, 64, device="cuda")).sum().backward()
    optimizer.step()
    for name in ("last.pt", f"step-{step}.pt", f"out-{step}/model.pt"):
        if "/" in name:
            os.makedirs(os.path.dirname(name), exist_ok=True)
        torch.save({"weights": model.state_dict(), "by": os.getpid()}, name)
        time.sleep(0.002)
        assert torch.load(name, weights_only=False)["by"] == os.getpid(), name
    if step > 5:
        os.remove(f"step-{step - 5}.pt")
for step in range(40):
    name = f"out-{step}/model.pt"
    assert torch.load(name, weights_only=False)["by"] == os.getpid(), name
"""


SHARING_A_FOLDER = """
import os, time, torch
model = torch.nn.Linear(64, 64).cuda()
def wait_for(condition):
    while not condition():
        time.sleep(0.01)
try:
    os.close(os.open("here-first", os.O_CREAT | os.O_EXCL))
    is_first = True
except FileExistsError:
    is_first = False
if is_first:
    os.makedirs("out")
    torch.save(model.state_dict(), "out/first.pt")
    open("out/state-of-first.json", "w").close()
    open("here-folder", "w").close()
    wait_for(lambda: os.path.exists("here-second"))
else:
    wait_for(lambda: os.path.exists("here-folder"))
    os.makedirs("out", exist_ok=True)
    torch.save(model.state_dict(), "out/second.pt")
    open("out/state-of-second.json", "w").close()
    open("here-second", "w").close()
    wait_for(lambda: not os.path.exists("out/first.pt"))
    time.sleep(0.5)
    assert torch.load("out/second.pt")["weight"].shape == (64, 64)
    assert os.path.exists("out/state-of-second.json")
"""


def two_rehearsals(folder: Path, script: str) -> list[dict[str, Any]]:
    (folder / "train.py").write_text(script)
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder.parent / "cache")}
    both = [
        subprocess.Popen(
            [
                *(str(PROGRAM), "run", "--gpu", "3060", "--steps", "0", "--python", PYTHONS[0]),
                *("--timeout", "90s", "--json", f"{number}.json", "train.py"),
            ],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for number in range(2)
    ]
    for process in both:
        output, _ = process.communicate(timeout=120)
        assert process.returncode == 0, output
    left = [name for name in os.listdir(folder) if not name.startswith("here-")]
    assert sorted(left) == ["0.json", "1.json", "train.py"]
    return [json.loads((folder / f"{number}.json").read_text()) for number in range(2)]


def test_two_rehearsals_in_one_folder_do_not_disturb_each_other(tmp_path: Path) -> None:
    first, second = two_rehearsals(tmp_path, SAVING)
    assert first["peak_device_bytes"] == second["peak_device_bytes"]
    assert first["steps"] == second["steps"] == 40


def test_a_folder_that_another_rehearsal_works_in_is_left_to_it(tmp_path: Path) -> None:
    two_rehearsals(tmp_path, SHARING_A_FOLDER)


def test_tensors_on_the_card_go_from_workers_to_the_script(rehearse_reference: Rehearse) -> None:
    done = rehearse_reference(
        """
        import torch
        from torch.utils.data import DataLoader, Dataset

        class Drawn(Dataset):
            def __len__(self):
                return 16

            def __getitem__(self, index):
                return torch.full((1024, 1024), float(index), device="cuda")

        if __name__ == "__main__":
            for batch in DataLoader(Drawn(), batch_size=4, num_workers=2):
                print(tuple(batch.shape), batch.device, torch.cuda.memory_allocated())
        """,
        "--no-retry",
    ).expect(0)
    # A batch of the worker takes 16 MiB of its own, and nothing of the script's.
    assert done.stdout.count("(4, 1024, 1024) cuda:0 0") == 4
    assert done["peak_device_bytes"] > 16 * MIB
