"""`ghostgpu run` finds the smallest memory that whole trainings need on a real card.

A real H200 was asked by bisection, with `torch.cuda.set_per_process_memory_fraction`, in forks of
one process (`verdicts/smallest_limits.py`) and in processes of their own
(`verdicts/own_processes.py`); where segments lie elsewhere, the two differ. The command proposes by
replaying a history, and confirms by one rehearsal or a few on a smaller card. `need_differs` of a
job says why its answer is none of the measured ones.
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
from test_verdicts import CHECKED, JOBS, OWN_PROCESSES, RECORDED, VERDICTS

from scope import is_short

#: How far an answer may be off that is not one of the measured ones, in parts of the nearest.
TOLERANCE = 0.01
ASKED = CHECKED if is_short() else tuple(JOBS)


def measured(name: str) -> list[int]:
    """The smallest limits that a job was found to need on the card, in ascending order."""
    keys = ("smallest_limit_bytes", "steady_limit_bytes")
    runs = (RECORDED.get(name, {}), OWN_PROCESSES.get(name, {}))
    return sorted({run[key] for run in runs for key in keys if key in run})


@pytest.mark.parametrize("name", ASKED)
def test_a_job_needs_as_much_as_on_the_card(name: str, tmp_path: Path) -> None:
    answer = rehearse(name, tmp_path)
    limits = measured(name)
    needed: int = answer["needed_reserved_bytes"]
    # A job whose answer has become a measured one leaves the list of those that differ.
    if "need_varies" not in JOBS[name]:
        assert (needed in limits) != ("need_differs" in JOBS[name]), (needed, limits)
    tolerance = JOBS[name].get("need_tolerance", TOLERANCE)
    assert min(abs(needed - limit) / limit for limit in limits) <= tolerance, (needed, limits)
    assert (needed < limits[0]) == ("too_little" in JOBS[name]), (needed, limits)
    # What is outside PyTorch comes on top, and more memory is never less comfortable.
    outside = answer["peak_device_bytes"] - answer["peak_reserved_bytes"]
    assert answer["needed_device_bytes"] == needed + outside
    assert answer["needed_device_bytes"] <= answer["comfortable_device_bytes"]
    if name in RECORDED and "differs" not in JOBS[name]:
        comfortable = RECORDED[name]["unlimited"]["peak_reserved_bytes"] + outside
        # The rest of a training whose memory grows is extrapolated.
        is_extrapolated = "extrapolated" in JOBS[name].get("need_differs", "")
        more = tolerance * comfortable if is_extrapolated else 0
        assert 0 <= answer["comfortable_device_bytes"] - comfortable <= more


def rehearse(name: str, folder: Path) -> dict[str, Any]:
    script, *words = shlex.split(JOBS[name]["command"])
    written = folder / "answer.json"
    command = [program(), "run", "--gpu", "h200", "--json", str(written)]
    command += ["--", sys.executable, str(VERDICTS / "scripts" / script), *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert written.exists(), done.stdout[-2000:] + done.stderr[-2000:]
    assert_no_agent_fault(written)
    answer: dict[str, Any] = json.loads(written.read_text())
    return answer
