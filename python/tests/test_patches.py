"""A trick that is written into a script has the figures of the same trick applied from outside."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from change_cases import BLOCKS, LATE_ZERO_GRAD, LAYERS, TRAINING, TRANSFORMERS, VISION
from conftest import REPOSITORY, Rehearse, built, needs_torch
from test_changes import figures, forget

pytestmark = needs_torch

CLIPPED = TRAINING.replace(
    "    optimizer.step()\n",
    "    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n    optimizer.step()\n",
)

CASES: dict[str, tuple[str, list[str], list[dict[str, Any]]]] = {
    "autocast in bf16": (
        BLOCKS + TRAINING,
        ["--amp", "bf16"],
        [{"name": "autocast", "options": {"dtype": "bf16"}}],
    ),
    "autocast over convolutions, with evaluation": (
        VISION,
        ["--amp", "bf16"],
        [{"name": "autocast", "options": {"dtype": "bf16"}}],
    ),
    "accumulation": (
        BLOCKS + CLIPPED,
        ["--accumulate", "2"],
        [{"name": "accumulation", "options": {"steps": "2"}}],
    ),
    "checkpointing of blocks": (BLOCKS + TRAINING, ["--checkpoint", "auto"], [{"name": "checkpointing"}]),
    "checkpointing of convolutions": (VISION, ["--checkpoint", "auto"], [{"name": "checkpointing"}]),
    "checkpointing of some blocks": (
        BLOCKS + TRAINING,
        ["--checkpoint", "3"],
        [{"name": "checkpointing", "options": {"blocks": "3"}}],
    ),
    "checkpointing by transformers": (
        TRANSFORMERS,
        ["--checkpoint", "auto"],
        [{"name": "checkpointing"}],
    ),
    "no graph in evaluation": (VISION, ["--eval-no-grad"], [{"name": "no-grad-evaluation"}]),
    "a fused optimizer": (
        BLOCKS + TRAINING,
        ["--optimizer", "fused"],
        [{"name": "optimizer-form", "options": {"form": "fused"}}],
    ),
    "an optimizer in for-loop form": (
        BLOCKS + TRAINING,
        ["--optimizer", "for-loop"],
        [{"name": "optimizer-form", "options": {"form": "for-loop"}}],
    ),
    "Adafactor": (BLOCKS + TRAINING, ["--optimizer", "adafactor"], [{"name": "adafactor"}]),
    "gradients before the forward pass": (
        LATE_ZERO_GRAD,
        ["--early-zero-grad"],
        [{"name": "early-zero-grad"}],
    ),
    "gradients dropped before evaluation": (
        VISION,
        ["--eval-drop-gradients"],
        [{"name": "drop-gradients"}],
    ),
    "weights in bfloat16": (TRANSFORMERS, ["--pure-bf16"], [{"name": "bfloat16-weights"}]),
    "chunks": (
        LAYERS,
        ["--chunks", "4"],
        [{"name": "chunking", "options": {"chunks": "4"}}],
    ),
    "a step in backward": (
        LAYERS,
        ["--optimizer", "in-backward"],
        [{"name": "optimizer-in-backward"}],
    ),
    "a smaller evaluation batch": (
        VISION,
        ["--eval-batch", "4"],
        [{"name": "small-evaluation-batch", "options": {"batch": "4"}}],
    ),
    "a smaller batch": (
        VISION,
        ["--smaller-batch", "8"],
        [{"name": "smaller-batch", "options": {"batch": "8"}}],
    ),
    "no search among convolutions": (
        VISION,
        ["--no-cudnn-benchmark"],
        [{"name": "no-cudnn-benchmark"}],
    ),
    "several tricks": (
        BLOCKS + CLIPPED,
        ["--amp", "bf16", "--checkpoint", "auto", "--optimizer", "fused", "--accumulate", "2"],
        [
            {"name": "checkpointing"},
            {"name": "autocast"},
            {"name": "accumulation"},
            {"name": "optimizer-form"},
        ],
    ),
}


def patched(script: str, flags: list[str], folder: Path) -> str:
    """The script after `ghostgpu launch --patch`, applied by `patch`."""
    path = folder / "patched.py"
    path.write_text(script)
    command = [built("ghostgpu", "GHOSTGPU_PROGRAM"), "launch", "--patch", "-", *flags, path.name]
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    assert made.stdout, "the diff is empty"
    subprocess.run(
        ["patch", "--quiet", "-p0"], cwd=folder, input=made.stdout, text=True, check=True
    )
    return path.read_text()


@pytest.mark.parametrize("name", CASES)
def test_a_patched_script_has_the_figures_of_the_trick(
    name: str, rehearse_on_card: Rehearse, tmp_path: Path
) -> None:
    script, flags, tricks = CASES[name]
    applied = rehearse_on_card(script, tricks=tricks, steps=0)
    expected = figures(applied)
    forget(applied)
    # Where ghostgpu is installed it is on the path anyway.
    found = f"import torch, sys; sys.path.append({str(REPOSITORY / 'python')!r})\n"
    text = found + patched(script, flags, tmp_path)
    assert figures(rehearse_on_card(text, steps=0)) == expected, text
