"""`ghostgpu run` finds the smallest memory that whole trainings need on a real card.

A real H200 was asked by bisection, with `torch.cuda.set_per_process_memory_fraction`
(`verdicts/smallest_limits.py`). The command proposes by replaying a history, and confirms by one
rehearsal or a few on a smaller card. `need_differs` of a job says why its answer is not the same.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_exactness import assert_no_agent_fault, program
from test_verdicts import CHECKED, JOBS, RECORDED, VERDICTS

#: How far an answer may be off that is not the same to the byte, in parts of the recorded one.
TOLERANCE = 0.01


@pytest.mark.parametrize("name", CHECKED)
def test_a_job_needs_as_much_as_on_the_card(name: str, tmp_path: Path) -> None:
    answer = rehearse(name, tmp_path)
    recorded: int = RECORDED[name]["smallest_limit_bytes"]
    needed: int = answer["needed_reserved_bytes"]
    # A job whose answer has become the same leaves the list of those that differ.
    assert (needed == recorded) != ("need_differs" in JOBS[name]), (needed, recorded)
    tolerance = JOBS[name].get("need_tolerance", TOLERANCE)
    assert abs(needed - recorded) <= tolerance * recorded, (needed, recorded)
    # Less than the card needed only where the card itself, asked again, ended with less.
    assert needed >= recorded or "ends_with_less" in JOBS[name], (needed, recorded)
    # What is outside PyTorch comes on top, and more memory is never less comfortable.
    outside = answer["peak_device_bytes"] - answer["peak_reserved_bytes"]
    assert answer["needed_device_bytes"] == needed + outside
    assert answer["needed_device_bytes"] <= answer["comfortable_device_bytes"]
    unlimited = RECORDED[name]["unlimited"]
    if "differs" not in JOBS[name]:
        comfortable = unlimited["peak_reserved_bytes"] + outside
        assert answer["comfortable_device_bytes"] == comfortable


def rehearse(name: str, folder: Path) -> dict[str, Any]:
    script, *words = shlex.split(JOBS[name]["command"])
    written = folder / "answer.json"
    command = [program(), "run", "--gpu", "h200", "--steps", "0", "--json", str(written)]
    command += ["--", sys.executable, str(VERDICTS / "scripts" / script), *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert written.exists(), done.stdout[-2000:] + done.stderr[-2000:]
    assert_no_agent_fault(written)
    answer: dict[str, Any] = json.loads(written.read_text())
    return answer
