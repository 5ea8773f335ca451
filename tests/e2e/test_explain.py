"""`ghostgpu explain`: what PyTorch says when a rehearsal does not fit, and rehearsed advice."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from conftest import MIB, PROGRAM, PYTHONS, TIMEOUT_S, Answered, Rehearse

TRAINING = """
import argparse, torch
from torch.utils.data import DataLoader, TensorDataset
parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=2048)
batch = parser.parse_args().batch_size
data = TensorDataset(torch.randn(4096, 256), torch.zeros(4096, dtype=torch.long))
model = torch.nn.Sequential(
    torch.nn.Linear(256, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 4096), torch.nn.GELU(),
    torch.nn.Linear(4096, 10)
).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for inputs, labels in DataLoader(data, batch_size=batch):
    outputs = model(inputs.cuda().repeat(16, 1))
    torch.nn.functional.cross_entropy(outputs, labels.cuda().repeat(16)).backward()
    optimizer.step()
    optimizer.zero_grad()
"""
CARD = ("--gpu", "h200", "--memory", "1500MiB")


def explain(done: Answered, *options: str) -> tuple[int, dict[str, Any]]:
    """Explain what the script printed, in the folder in which it ran."""
    (done.folder / "error.log").write_text(done.stderr)
    words = [str(PROGRAM), "explain", "error.log", "--json", *options]
    process = subprocess.run(
        words, cwd=done.folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert process.stdout, process.stderr
    return process.returncode, json.loads(process.stdout)


@pytest.mark.every_torch
def test_the_error_of_every_torch_is_read_to_the_figure(rehearse: Rehearse) -> None:
    done = rehearse(TRAINING, *CARD, "--no-retry").expect(3)
    code, answer = explain(done)
    assert code == 0
    finding = answer["finding"]
    assert finding["kind"] == "cuda-allocator"
    requested = finding["figures"]["requested"]
    off_by = abs(requested["bytes"] - done["oom"]["requested_bytes"])
    assert off_by <= requested["rounded_by_bytes"]
    total = finding["figures"]["total"]
    assert abs(total["bytes"] - 1500 * MIB) <= total["rounded_by_bytes"]
    assert answer["account"]["adds_up"] is True
    place = finding["traceback"]["frames"][0]
    assert place["file"].endswith("train.py")


def test_advice_is_tried_with_the_script(rehearse_reference: Rehearse) -> None:
    done = rehearse_reference(TRAINING, *CARD, "--no-retry").expect(3)
    options = (*CARD, "--python", PYTHONS[0], "--script", "train.py")
    code, answer = explain(done, *options)
    assert code == 0
    rehearsed = answer["rehearsed"]
    assert rehearsed["as_it_is"]["outcome"] == "does-not-fit"
    works = {works["what"]: works for works in rehearsed["works"]}
    batch = next(what for what in works if what.startswith("a batch of "))
    assert works[batch]["peak_device_bytes"] <= 1500 * MIB
    # The tricks are those of a plan; each was rehearsed on the same card.
    plan = rehearsed["plan"]
    assert plan["schema"] == "ghostgpu.plan/1"
    assert plan["gpu"]["total_bytes"] == 1500 * MIB
    assert plan["result"] in ("found", "nothing-fits")
    for each in plan["candidates"]:
        assert each["outcome"] != "fits" or each["peak_device_bytes"] <= 1500 * MIB
