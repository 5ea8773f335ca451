"""Further rehearsals continue a copy of the script that was made before it first used the card."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path
from typing import Any, Optional

import pytest
from conftest import MIB, PROGRAM, PYTHONS, Answered, Rehearse

MEASURES_NEED = True

#: Records how often it started and used the card, and reads a file before and after that.
SCRIPT = """
import os, sys, threading, torch

def say(word):
    with open("said.txt", "a") as file:
        file.write(word + "\\n")

if not os.path.exists("data.txt"):
    with open("data.txt", "w") as file:
        file.write("".join(f"{number}\\n" for number in range(20_000)))
say("began")
data = open("data.txt")
assert data.readline() == "0\\n"
HELD
model = torch.nn.Linear(64, 64).cuda()
assert [int(line) for line in data] == list(range(1, 20_000))
say("used")
LATER
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for mib in (300, 400, 500):
    tensors = [torch.empty(mib << 20, dtype=torch.uint8, device="cuda") for _ in range(2)]
    del tensors
    model(torch.zeros(4, 64, device="cuda")).sum().backward()
    optimizer.step()
"""


def script(held: str = "", later: str = "") -> str:
    return SCRIPT.replace("HELD", held).replace("LATER", later)


def said(done: Answered) -> list[str]:
    return (done.folder / "said.txt").read_text().split()


FIGURES = ("verdict", "peak_allocated_bytes", "peak_reserved_bytes", "peak_device_bytes")
NEEDS = ("needed_allocated_bytes", "needed_reserved_bytes", "needed_device_bytes")


def test_a_copy_answers_what_the_script_itself_answers(rehearse_reference: Rehearse) -> None:
    copied = rehearse_reference(script()).expect(0)
    assert said(copied) == ["began", "used", "used"]
    # A call log requires whole runs.
    anew = rehearse_reference(script(), "--call-log", "calls.txt").expect(0)
    assert said(anew)[3:] == ["began", "used", "began", "used"]

    def figures(done: Answered) -> dict[str, Any]:
        return {name: done[name] for name in (*FIGURES, *NEEDS)}

    assert figures(copied) == figures(anew)
    assert copied["needed_allocated_bytes"] > 1000 * MIB


def test_a_job_that_does_not_fit_is_measured_in_copies(rehearse_reference: Rehearse) -> None:
    # A script may wrap the same function.
    held = "cuda = torch.nn.Module.cuda; torch.nn.Module.cuda = lambda module: cuda(module)"
    done = rehearse_reference(script(held), "--memory", "900MiB").expect(3)
    assert said(done).count("began") == 1
    assert done["needed_allocated_bytes"] > 1000 * MIB
    assert done["breakdown"], "whose memory it was is known of the run with unlimited memory"


@pytest.mark.parametrize(
    "held",
    [
        'log = open("log.txt", "w")',
        "threading.Thread(target=threading.Event().wait, daemon=True).start()",
        "reading, writing = os.pipe()",
        'import subprocess; child = subprocess.Popen(["sleep", "1"])',
    ],
    ids=["a file being written", "a thread", "a pipe", "a process"],
)
@pytest.mark.at_length
def test_a_script_whose_copy_would_share_something_begins_anew(
    rehearse_reference: Rehearse, held: str
) -> None:
    done = rehearse_reference(script(held)).expect(0)
    assert said(done) == ["began", "used", "began", "used"]


#: Blocks in use keep the rest of their segments: 1,120 MiB are reserved for 620 MiB in use.
IN_PIECES = """
import sys
import torch

large, small, medium = (int(each) << 20 for each in sys.argv[1:])
first = torch.empty(large, dtype=torch.uint8, device="cuda")
del first
kept = torch.empty(small, dtype=torch.uint8, device="cuda")
last = torch.empty(medium, dtype=torch.uint8, device="cuda")
"""


def test_the_runs_of_a_shell_script_are_all_rehearsed_again(rehearse_reference: Rehearse) -> None:
    commands = "python train.py 60 10 40 && python train.py 600 100 520"
    done = rehearse_reference(IN_PIECES, command=("bash", "-c", commands)).expect(0)
    assert done["peak_reserved_bytes"] == 1120 * MIB
    assert done["needed_device_bytes"] > done["peak_device_bytes"] - 20 * MIB


def test_what_fails_in_a_copy_alone_is_rehearsed_from_the_beginning(
    rehearse_reference: Rehearse,
) -> None:
    held = "import atexit; open('made.txt', 'w').close(); atexit.register(os.remove, 'made.txt')"
    later = "assert os.path.exists('made.txt')"
    done = rehearse_reference(script(held, later)).expect(0)
    assert said(done) == ["began", "used", "used", "began", "used"]
    assert done["needed_allocated_bytes"] > 1000 * MIB


def state_of(pid: int) -> Optional[str]:
    """The letter that the kernel shows for a process, if it is still there."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    except (FileNotFoundError, ProcessLookupError):
        return None


def test_ctrl_c_ends_a_copy_and_everything_it_comes_from(tmp_path: Path) -> None:
    later = "say(str(os.getpid()))\nimport time; time.sleep(3)"
    (tmp_path / "train.py").write_text(script(later=later))
    words = [str(PROGRAM), "run", "--gpu", "h200", "--python", PYTHONS[0], "train.py"]
    asked = subprocess.Popen(
        words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )

    def pids() -> list[int]:
        path = tmp_path / "said.txt"
        words = path.read_text().split() if path.exists() else []
        return [int(word) for word in words if word.isdigit()]

    deadline = time.monotonic() + 120
    while len(pids()) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    script_pid, copy_pid = pids()
    asked.send_signal(signal.SIGINT)
    _, errors = asked.communicate(timeout=60)
    assert asked.returncode == 128 + signal.SIGINT, errors
    assert "interrupted" in errors
    for pid in (script_pid, copy_pid):
        # A killed copy is a zombie until whoever inherited it has noticed.
        assert state_of(pid) in (None, "Z")
