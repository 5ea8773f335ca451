"""A job that does not fit: the answer says where, how much, and what it would have needed."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from conftest import GIB, MIB, REPOSITORY, Rehearse

sys.path.insert(0, str(REPOSITORY / "tests" / "exports"))

from ghost_file import count, read_ghost

MEASURES_NEED = True

SCRIPT = """
import torch

def work():
    kept = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    return kept, torch.empty(3 << 30, dtype=torch.uint8, device="cuda")  # too much

work()
"""


def users_frames(oom: dict[str, Any]) -> list[dict[str, Any]]:
    return [frame for frame in oom["stack"] if frame["is_user_code"]]


@pytest.mark.every_torch
def test_the_answer_names_the_line_the_request_and_the_need(rehearse: Rehearse) -> None:
    done = rehearse(SCRIPT, "--memory", "4GiB").expect(3)
    assert done["fits"] is False
    oom = done["oom"]
    assert oom["requested_bytes"] == 3 * GIB
    assert oom["is_fatal"] is True
    assert oom["stage"] == "setup"
    assert oom["message"].startswith(
        "CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 4.00 GiB"
    )
    last = users_frames(oom)[-1]
    assert last["function"] == "work"
    assert last["source"].endswith("# too much")
    assert last["line"] == 6
    # 4 GiB of tensors, the context, and nothing else.
    assert done["peak_allocated_bytes"] == 1 * GIB
    assert 4 * GIB + 400 * MIB < done["needed_device_bytes"] < 5 * GIB
    assert "out of memory" in done.stdout
    assert "train.py:6 in work" in done.stdout


@pytest.mark.every_torch
def test_the_recording_keeps_the_run_that_failed_beside_the_whole_one(rehearse: Rehearse) -> None:
    options = ("--memory", "4GiB", "--record", "run.ghost", "--report", "run.html")
    done = rehearse(SCRIPT, *options).expect(3)
    recording = read_ghost(done.folder / "run.ghost")
    (whole,), (failed,) = recording.cards, recording.failed_cards
    assert recording.failed_steps == 0
    assert not whole.failed and max(count(whole).allocated) == 4 * GIB
    ((event, requested),) = failed.failed.items()
    assert requested == 3 * GIB
    assert count(failed).allocated[event] == 1 * GIB
    # What was in use when memory ran out is not reported as kept by the script.
    assert count(failed).categories["temporary"][event] == 1 * GIB
    page = (done.folder / "run.html").read_text()
    for words in ("Until it ran out of memory", "Lines that held most then", "train.py:5 in work"):
        assert words in page


def test_a_backward_pass_is_told_from_a_forward_pass(rehearse: Rehearse) -> None:
    done = rehearse(
        """
import torch
weight = torch.zeros(1 << 28, device="cuda", requires_grad=True)  # 1 GiB
doubled = weight * 2
loss = doubled.sum()
loss.backward()
""",
        "--memory",
        "3GiB",
        "--no-retry",
    ).expect(3)
    assert done["oom"]["stage"] == "backward"
    assert users_frames(done["oom"])[-1]["source"] == "loss.backward()"
    assert done["needed_device_bytes"] is None


def test_a_script_that_catches_the_error_and_goes_on_fits(rehearse: Rehearse) -> None:
    done = rehearse(
        """
import torch
size = 8 << 30
while True:
    try:
        torch.empty(size, dtype=torch.uint8, device="cuda")
        break
    except torch.cuda.OutOfMemoryError:
        size //= 2
print("found", size)
""",
        "--memory",
        "4GiB",
    ).expect(0)
    assert done["fits"] is True
    assert "found 2147483648" in done.stdout
    assert [each["requested_bytes"] for each in done["recovered_ooms"]] == [8 * GIB, 4 * GIB]


def test_the_allocator_gives_its_cache_back_before_it_gives_up(rehearse: Rehearse) -> None:
    done = rehearse(
        """
import torch
first = [torch.empty(300 << 20, dtype=torch.uint8, device="cuda") for _ in range(6)]
del first  # 1.8 GiB in the cache, in pieces too small for what comes
torch.empty(2 << 30, dtype=torch.uint8, device="cuda")
""",
        "--memory",
        "4GiB",
    ).expect(0)
    assert done["retries"] == 1


FRACTION = """
import torch

torch.cuda.set_per_process_memory_fraction(1.0)
kept = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
more = torch.empty(4 << 30, dtype=torch.uint8, device="cuda")
"""


@pytest.mark.every_torch
def test_a_memory_fraction_does_not_limit_the_run_that_finds_the_need(rehearse: Rehearse) -> None:
    done = rehearse(FRACTION, "--memory", "4GiB").expect(3)
    assert 5 * GIB + 400 * MIB < done["needed_device_bytes"] < 6 * GIB


NO_ENGINE = """
import torch

held = torch.empty(700 << 20, dtype=torch.uint8, device="cuda")
try:
    torch.empty(8 << 30, dtype=torch.uint8, device="cuda")
except torch.OutOfMemoryError:
    pass
raise RuntimeError("{message}")
"""


@pytest.mark.parametrize(
    "message",
    [
        "GET was unable to find an engine to execute this computation",
        "FIND was unable to find an engine to execute this computation",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "cuDNN error: CUDNN_STATUS_NOT_INITIALIZED",
    ],
)
def test_a_library_that_gives_up_after_a_failed_request_is_out_of_memory(
    rehearse_reference: Rehearse, message: str
) -> None:
    script = NO_ENGINE.replace("{message}", message)
    done = rehearse_reference(script, "--memory", "4GiB").expect(3)
    assert done["oom"]["message"] == message
    assert done["oom"]["requested_bytes"] == 8 * GIB


def test_a_library_that_gives_up_without_a_failed_request_is_a_failing_script(
    rehearse_reference: Rehearse,
) -> None:
    message = "GET was unable to find an engine to execute this computation"
    script = f'import torch\ntorch.ones(1, device="cuda")\nraise RuntimeError("{message}")\n'
    done = rehearse_reference(script, "--memory", "4GiB").expect(1)
    assert done["oom"] is None
