"""The largest batch of whole trainings on the virtual card is that of the real one.

A real H200 was asked with a limit for PyTorch's memory (`verdicts/smallest_limits.py`): the largest
batch with which two epochs, their evaluations and checkpoints came to their end. `max-batch` must
find it within 2 %, and never a larger one.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_exactness import program
from test_verdicts import JOBS, RECORDED, VERDICTS

from scope import is_short

#: Too small by more than this part is timid.
TIMID = 0.02
#: For jobs of which `batch_differs` says why they are too small by more.
MOST_TIMID = 0.06
#: What the card has beside PyTorch's limit: the context and libraries find room there.
BESIDE_BYTES = 2 << 30
TIMEOUT_S = 1200
ASKED = {name: each for name, each in RECORDED.items() if "largest_batch" in each}
#: A loop with two optimizers, and one whose images have different sizes.
SENTINELS = ("gan", "detection")


def largest_batch(name: str, folder: Path) -> dict[str, Any]:
    """What `max-batch` answers about a recorded job under its recorded limit."""
    recorded = ASKED[name]
    limit = recorded["largest_batch"]["limit_bytes"]
    script, *words = shlex.split(recorded["command"])
    out = folder / "answer.json"
    memory_mib = (limit + BESIDE_BYTES) >> 20
    command = [program(), "max-batch", "--gpu", "h200", "--memory", f"{memory_mib}MiB"]
    command += ["--python", sys.executable, f"--json={out}", "--arg", "--batch-size"]
    command += [str(VERDICTS / "limited.py"), str(limit), str(VERDICTS / "scripts" / script)]
    done = subprocess.run(
        [*command, *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        timeout=TIMEOUT_S,
    )
    assert out.exists(), done.stdout[-2000:] + done.stderr[-2000:]
    answer: dict[str, Any] = json.loads(out.read_text())
    return answer


@pytest.mark.parametrize("name", SENTINELS if is_short() else tuple(ASKED))
def test_the_largest_batch_is_that_of_the_card(name: str, tmp_path: Path) -> None:
    found = largest_batch(name, tmp_path)["largest_batch"]
    real = ASKED[name]["largest_batch"]["largest"]
    is_close = real * (1 - TIMID) <= found
    assert is_close != ("batch_differs" in JOBS[name]), (found, real)
    assert real * (1 - MOST_TIMID) <= found <= real


def test_every_sentinel_was_asked_for_its_batch() -> None:
    assert set(SENTINELS) <= set(ASKED)
