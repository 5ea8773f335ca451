"""Our replica of PyTorch's caching allocator, against PyTorch's own on the virtual card.

`tests/allocator/drive.py` drives the real one at random and writes down what it did; the example
`compare` of `crates/allocator` repeats it and names the first address, segment, statistic, trace
entry or word of an error that differs. `make prove-allocator` does it for every plan, at length.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from conftest import PROGRAM, REPOSITORY, TIMEOUT_S

DRIVE = REPOSITORY / "tests" / "allocator" / "drive.py"
RUN = [str(PROGRAM), "run", "--gpu", "h200", "--memory", "4GiB", "--steps", "0", "--no-retry", "--"]
BUILD = ["cargo", "build", "--release", "--locked", "--message-format=json"]
BUILD += ["-p", "ghostgpu-allocator", "--example", "compare"]
OPERATIONS = os.environ.get("GHOSTGPU_ALLOCATOR_OPERATIONS", "500")
SEED = os.environ.get("GHOSTGPU_ALLOCATOR_SEED", "1")
AT_LENGTH = int(OPERATIONS) > 1000

SOME_PLANS = ("full-streams", "full-expandable", "collect-split", "pools-full", "division-list")
"""These cover failed requests, retries, several streams, garbage collection and private pools."""

MORE_PLANS = (
    "default",
    "streams",
    "expandable",
    "expandable-streams",
    "split",
    "split-rounding",
    "split-expandable",
    "divisions",
    "large-segments",
    "large-segments-expandable",
    "collect",
    "limit",
    "full",
    "full-split",
    "pools",
    "pools-streams",
    "pools-expandable",
    "small-reserve",
    "small-reserve-streams",
    "fraction-option",
    "rejecting",
    "switching",
)


@pytest.fixture(scope="session")
def compare() -> str:
    """The program that compares, built once."""
    done = subprocess.run(BUILD, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    built = [json.loads(line).get("executable") for line in done.stdout.splitlines()]
    (program,) = filter(None, built)
    return str(program)


@pytest.mark.parametrize("plan", SOME_PLANS + (MORE_PLANS if AT_LENGTH else ()))
def test_the_replica_does_what_pytorchs_allocator_did(
    plan: str, any_python: str, compare: str, tmp_path: Path
) -> None:
    recording = tmp_path / f"{plan}.txt"
    options = ["--plan", plan, "--seed", SEED, "--operations", OPERATIONS, "--out", str(recording)]
    driven = subprocess.run(
        [*RUN, any_python, str(DRIVE), *options],
        capture_output=True,
        text=True,
        timeout=None if AT_LENGTH else TIMEOUT_S,
    )
    if "has no such options" in driven.stderr:
        pytest.skip(f"does not apply: this torch has no options for {plan}")
    assert recording.exists(), driven.stdout + driven.stderr
    compared = subprocess.run(
        [compare, str(recording)], capture_output=True, text=True, check=False
    )
    assert compared.returncode == 0, compared.stdout + compared.stderr
    assert ": same: " in compared.stdout
