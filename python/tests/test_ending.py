"""Every way a script can end leaves a report, and the script's own exit code."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from conftest import Rehearse, needs_torch

pytestmark = needs_torch

OOM = "torch.OutOfMemoryError('CUDA out of memory. Tried to allocate 20.00 GiB. GPU 1 has ...')"


def test_an_exception_is_named_and_its_traceback_printed_as_usual(rehearse: Rehearse) -> None:
    done = rehearse("import torch\n{}['x']")
    assert done.code == 1
    assert done.stderr.rstrip().endswith("KeyError: 'x'")
    assert done.report["exception"] == "KeyError: 'x'"
    assert done.report["ooms"] == []


@pytest.mark.parametrize(
    "raising",
    [
        f"raise {OOM}",
        f"try:\n    raise {OOM}\nexcept RuntimeError as error:\n    raise ValueError from error",
        f"try:\n    raise {OOM}\nexcept RuntimeError:\n    {{}}['x']",
        f"try:\n    raise {OOM}\nexcept RuntimeError:\n    sys.exit(1)",
        f"sys.excepthook = lambda *a: None\nraise {OOM}",
    ],
    ids=["itself", "as a cause", "as a context", "reported by the script", "with a hook"],
)
def test_an_out_of_memory_error_that_ends_the_script_is_fatal(
    rehearse: Rehearse, raising: str
) -> None:
    done = rehearse(f"import sys, torch\n{raising}")
    assert done.code == 1
    (oom,) = done.report["ooms"]
    assert oom["is_fatal"] is True
    assert oom["message"].startswith("CUDA out of memory. Tried to allocate 20.00 GiB.")
    assert (oom["requested_bytes"], oom["device"]) == (20 << 30, 1)
    assert oom["stack"][-1]["is_user_code"] is True
    assert oom["stack"][-1]["file"].endswith("script.py")


def test_an_error_in_a_child_process_is_in_the_childs_report(rehearse: Rehearse) -> None:
    done = rehearse(
        f"""
        import multiprocessing, torch
        torch.cuda.is_initialized = lambda: True   # as if the child used the card
        torch.cuda._is_in_bad_fork = lambda: False
        torch.cuda.device_count = lambda: 0

        def work():
            raise {OOM}

        if __name__ == "__main__":
            child = multiprocessing.get_context("fork").Process(target=work)
            child.start()
            child.join()
            print(child.exitcode)
        """
    )
    assert (done.code, done.stdout.strip()) == (0, "1")
    assert "OutOfMemoryError" in done.stderr
    assert sorted(len(report["ooms"]) for report in done.reports) == [0, 1]


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        ("os._exit(7)", 7),
        ("sys.exit(5)", 5),
        (f"os.kill(os.getpid(), {int(signal.SIGTERM)})", -signal.SIGTERM),
        (f"os.kill(os.getpid(), {int(signal.SIGINT)})", -signal.SIGINT),
    ],
)
def test_hard_ends_leave_a_report_and_keep_their_code(
    rehearse: Rehearse, ending: str, code: int
) -> None:
    done = rehearse(f"import os, sys, time, torch\n{ending}\ntime.sleep(10)")
    assert done.code == code
    assert done.report["torch"]
    assert not [name for name in os.listdir(done.run_dir) if name.endswith(".unfinished")]


def test_a_handler_that_the_script_sets_stays_its_own(rehearse: Rehearse) -> None:
    done = rehearse(
        """
        import os, signal, sys, torch
        signal.signal(signal.SIGTERM, lambda *a: sys.exit(9))
        os.kill(os.getpid(), signal.SIGTERM)
        """
    )
    assert done.code == 9


def test_a_fault_of_the_agent_becomes_an_assumption(rehearse: Rehearse) -> None:
    done = rehearse(
        """
        import torch
        torch.cuda.is_initialized = None   # breaks the reading of peaks
        model = torch.nn.Linear(4, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        optimizer.step()
        torch.cuda.is_initialized = lambda: False
        print("went on")
        """
    )
    assert (done.code, done.stdout.strip(), done.stderr) == (0, "went on", "")
    assert any("failed in StepCounter" in fault for fault in done.faults)


def test_a_file_that_was_left_open_is_written_out(rehearse: Rehearse, tmp_path: Path) -> None:
    done = rehearse(
        """
        class Log:
            def __init__(self, name):
                self.file = open(name, "w")
                self.file.write(name)
                self.itself = self

        import torch
        kept, log = open("plain.txt", "w"), Log("in a cycle.txt")
        kept.write("plain.txt")
        """
    )
    assert done.code == 0, done.stderr
    for name in ("plain.txt", "in a cycle.txt"):
        assert (tmp_path / name).read_text() == name
