"""Snapshots and tracebacks have the script's stacks, without frames of the agent's."""

from __future__ import annotations

import copy
import os

import pytest
from conftest import Rehearse, needs_torch

from ghostgpu.agent import own_frames

OWN = {"filename": os.path.join(os.path.dirname(own_frames.__file__), "known_calls.py")}
SCRIPT = {"filename": "/work/train.py"}
OTHER = {"filename": "/work/ghostgpu/agent.py"}

# The frames of a stack, and what is left of them.
STACKS = [
    ([], []),
    ([SCRIPT], [SCRIPT]),
    ([OWN, SCRIPT], [SCRIPT]),
    ([OWN, OWN], []),
    ([SCRIPT, OWN, OTHER], [SCRIPT, OTHER]),
]


@pytest.mark.parametrize(("frames", "left"), STACKS)
def test_frames_of_the_agent_are_left_out_wherever_a_snapshot_has_them(
    frames: list[dict[str, str]], left: list[dict[str, str]]
) -> None:
    shared = copy.deepcopy(frames)
    snapshot = {
        "segments": [{"frames": shared, "blocks": [{"frames": shared}, {"frames": [OWN]}, {}]}],
        "device_traces": [[{"frames": copy.deepcopy(frames)}], []],
    }
    own_frames.remove_own_frames(snapshot)
    assert snapshot == {
        "segments": [{"frames": left, "blocks": [{"frames": left}, {"frames": []}, {}]}],
        "device_traces": [[{"frames": left}], []],
    }


@needs_torch
def test_a_snapshot_of_a_rehearsal_shows_the_stack_of_the_script(
    rehearse_on_card: Rehearse,
) -> None:
    done = rehearse_on_card(
        """
        import os  # first, so that the script has a process, and a stack, of its own
        import torch
        torch.cuda.memory._record_memory_history("all", stacks="python")
        def make():
            return torch.rand(311, 411, device="cuda")
        kept = make()
        snapshot = torch.cuda.memory._snapshot()
        blocks = [block for segment in snapshot["segments"] for block in segment["blocks"]]
        events = snapshot["device_traces"][0]
        for holder in (*blocks, *events):
            if holder.get("requested_size", holder.get("size")) in (311 * 411 * 4, 511488):
                print([frame["name"] for frame in holder["frames"]])
        """
    )
    assert done.stdout.splitlines() == ["['make', '<module>']"] * 2, done.stdout + done.stderr


@needs_torch
def test_the_traceback_that_ends_a_script_shows_no_frame_of_the_agent(
    rehearse_on_card: Rehearse,
) -> None:
    done = rehearse_on_card(
        """
        import os  # first, so that the script has a process, and a traceback, of its own
        import torch
        layer = torch.nn.Linear(4, 4).cuda()
        try:
            layer(torch.rand(3, 5).cuda())
        except RuntimeError as error:
            raise ValueError("the shapes do not match") from error
        """
    )
    assert done.code == 1
    assert "The above exception was the direct cause" in done.stderr
    assert "in _wrapped_call_impl" in done.stderr, "frames of torch stay"
    files = [line for line in done.stderr.splitlines() if line.startswith('  File "')]
    own = os.path.dirname(own_frames.__file__)
    assert files
    assert not [file for file in files if own in file], done.stderr
    assert done.report["exception"].startswith("ValueError: the shapes")
