"""Whose bytes: what rehearsals of measured cases record, against the real card and PyTorch itself.

- Every sum of a recording is PyTorch's own at that moment, and the categories add up to it.
- Recording changes nothing: the peaks are those of the real card, as without it.
- Parameters, gradients and optimizer state are the storages that were counted on the real card.
"""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from test_exactness import HARNESS, MEASURED, REAL, assert_no_agent_fault, ghostgpu

sys.path.insert(0, str(REAL.parents[1] / "tests" / "exports"))

from ghost_file import Card, count, read_ghost

from scope import is_short, one_per_family

COUNTED = {
    path.stem: json.loads(path.read_text())["bytes"]
    for path in sorted((REAL / "storages").glob("*.json"))
}

#: Cases in which other things happen to memory: expandable segments, caps that force retries and
#: caps that end in failure, compiled code, evaluation, packed sequences, several optimizers.
FURTHER = (
    *("attention-compiled-bf16", "autoencoder-transposed-fp16", "clip-bf16", "gpt2-clipped"),
    *("gpt2-checkpointing-reentrant", "lstm-packed", "mlp-compiled", "graph-network"),
    *("mlp-gradients-zeroed-in-place", "resnet18-accumulate-4", "speech-ctc", "whisper-tiny"),
)
RECORDED = [*COUNTED, *FURTHER]
if is_short():
    RECORDED = [*one_per_family(list(COUNTED), MEASURED), *one_per_family(list(FURTHER), MEASURED)]


@dataclass
class Recorded:
    """What is left of a rehearsal: its recording, and what the case itself measured."""

    recording: Path
    result: Path
    output: str


@pytest.fixture(scope="session")
def recorded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Recorded]:
    """Rehearses every case that is asked for once, two at a time."""
    folder = tmp_path_factory.mktemp("recorded")
    selected = {
        item.callspec.params["name"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and "recorded" in item.fixturenames
    }

    def rehearse(name: str) -> tuple[str, Recorded]:
        recording, result = folder / f"{name}.ghost", folder / f"{name}.json"
        answer = folder / f"{name}.answer.json"
        options = ("--record", str(recording), "--json", str(answer))
        command = [*ghostgpu(*options), str(HARNESS / "run_case.py")]
        command += [name, "--out", str(result)]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=600)
        assert_no_agent_fault(answer)
        return name, Recorded(recording, result, done.stdout + done.stderr)

    with ThreadPoolExecutor(2) as pool:
        return dict(pool.map(rehearse, sorted(selected)))


def card_of(recorded: Recorded) -> Card:
    assert recorded.recording.exists(), recorded.output
    recording = read_ghost(recorded.recording)
    # The recording is compared with PyTorch's own figures at each event when it is made.
    assert not recording.warnings
    (card,) = recording.cards
    return card


@pytest.mark.parametrize("name", RECORDED)
def test_categories_add_up_to_what_the_allocator_says(
    name: str, recorded: dict[str, Recorded]
) -> None:
    card = card_of(recorded[name])
    counted = count(card)
    rounding = sum(
        each.block - each.requested for each in card.allocations if each.is_live(counted.peak_event)
    )
    at_peak = counted.peak_event + 1
    categories = sum(sums[at_peak] for sums in counted.categories.values())
    assert categories + rounding == counted.allocated[at_peak]
    steps = json.loads(recorded[name].result.read_text())["steps"]
    assert max(counted.allocated) == max(step["peak_allocated_bytes"] for step in steps)
    assert max(counted.reserved) == max(step["peak_reserved_bytes"] for step in steps)


@pytest.mark.parametrize("name", RECORDED)
def test_recording_does_not_change_what_it_records(
    name: str, recorded: dict[str, Recorded]
) -> None:
    steps = json.loads(recorded[name].result.read_text())["steps"]
    assert [(step["peak_allocated_bytes"], step["peak_reserved_bytes"]) for step in steps] == [
        (step["peak_allocated_bytes"], step["peak_reserved_bytes"])
        for step in MEASURED[name]["steps"]
    ]


@pytest.mark.parametrize("name", [name for name in RECORDED if name in COUNTED])
def test_categories_are_the_storages_of_the_real_card(
    name: str, recorded: dict[str, Recorded]
) -> None:
    card = card_of(recorded[name])
    ends = [
        following.first_event
        for phase, following in zip(card.phases, card.phases[1:])
        if phase.stage == "optimizer_step"
    ]
    sums = count(card).categories
    # After the last event of the last optimizer step; the first entry is before all events.
    found = {category: sums[category][ends[-1]] for category in COUNTED[name]}
    assert found == COUNTED[name]
