"""A job that does not fit: the answer says where, how much, and what it would have needed."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import GIB, MIB, Rehearse

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
