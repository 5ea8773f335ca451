# Modules and gradients are reached by index and name, which torch's types do not know.
# ruff: noqa: E501
# mypy: disable-error-code="arg-type,assignment,attr-defined,index,misc,name-defined,no-any-return,no-untyped-call,operator,union-attr"
"""The trick surviving-oom with allocations that fail at random: steps finish or say why not.

`GHOSTGPU_ALLOCATION_FAULTS` lets allocations of the stand-in library fail
(`crates/device/src/faults.rs`).
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from conftest import Rehearse, needs_torch

pytestmark = needs_torch

# Large enough for each step to need the driver: nothing is computed.
MODELS = {
    "mlp": """
model = nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)).cuda()
def batch(): return torch.randn(8, 128, 1024, device="cuda")
""",
    "convolutions": """
model = nn.Sequential(
    nn.Conv2d(3, 32, 3), nn.GroupNorm(4, 32), nn.ReLU(), nn.Conv2d(32, 32, 3), nn.Flatten(),
    nn.Linear(32 * 124 * 124, 16),
).cuda()
def batch(): return torch.randn(8, 3, 128, 128, device="cuda")
""",
    "lstm": """
class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(512, 1024, batch_first=True)
    def forward(self, x):
        return self.lstm(x)[0][:, -1]
model = Reader().cuda()
def batch(): return torch.randn(8, 512, 512, device="cuda")
""",
    "transformer with dropout": """
layer = nn.TransformerEncoderLayer(512, 4, 2048, dropout=0.1, batch_first=True)
model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).cuda()
def batch(): return torch.randn(8, 256, 512, device="cuda")
""",
    "embeddings": """
model = nn.Sequential(
    nn.Embedding(1000, 1024), nn.Flatten(), nn.Linear(512 * 1024, 16), nn.LayerNorm(16)
).cuda()
def batch(): return torch.zeros(8, 512, dtype=torch.long, device="cuda")
""",
    "loss of its own": """
class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(1024, 2048), nn.GELU(), nn.Linear(2048, 512))
    def forward(self, x):
        return nn.functional.cross_entropy(self.layers(x).flatten(0, 1), x[..., 0].long().flatten())
model = Tagger().cuda()
def batch(): return torch.zeros(8, 128, 1024, device="cuda")
""",
}

LOOP = """
import gc, json
import torch
from torch import nn
# Keeps a segment for small tensors, so that the script's own ones need no driver.
small = torch.zeros(1, device="cuda")
MODEL
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
finished, reports, others, held = 0, [], [], []
for step in range(STEPS):
    torch.cuda.empty_cache()
    x = batch() if step == 0 else x
    try:
        out = model(x)
        loss = out.mean()
        loss.backward()
        finished += 1
    except RuntimeError as error:
        (reports if "ran out of memory" in str(error) else others).append(str(error))
    out = loss = None
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if step in (9, STEPS - 1):
        gc.collect()
        # One for each thread that multiplies matrices, from whenever it does so first.
        torch._C._cuda_clearCublasWorkspaces()
        held.append(torch.cuda.memory_allocated())
with open("steps.json", "w") as file:
    json.dump({"finished": finished, "reports": reports, "others": others, "held": held}, file)
"""


# Each step makes the optimizer's state anew, with everything else in place.
STEPS = """
import json
import torch
from torch import nn
model = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(8))).cuda()
small = torch.zeros(1, device="cuda")
for each in model.parameters():
    each.grad = torch.zeros_like(each)
finished, reports, others = 0, [], []
for step in range(40):
    torch.cuda.empty_cache()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    try:
        optimizer.step()
        finished += 1
        assert all(len(optimizer.state[each]) == 3 for each in model.parameters())
    except RuntimeError as error:
        (reports if "ran out of memory" in str(error) else others).append(str(error))
    del optimizer
with open("steps.json", "w") as file:
    json.dump({"finished": finished, "reports": reports, "others": others}, file)
"""


def test_steps_of_optimizers_finish_or_say_why_not(
    rehearse_on_card: Rehearse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GHOSTGPU_ALLOCATION_FAULTS", "probability=0.02,seed=3,length=2,after=20")
    done = rehearse_on_card(STEPS, tricks=[{"name": "surviving-oom", "options": {}}], steps=0)
    path = done.run_dir.parent / "steps.json"
    assert path.exists(), f"{done.stdout}\n{done.stderr}"
    result = json.loads(path.read_text())
    assert result["others"] == []
    assert result["finished"] + len(result["reports"]) == 40
    assert result["finished"] > 30
    (report,) = done.report["changes"]
    assert "AdamW stepped parameter by parameter" in (report["did"] or "")


def run(
    rehearse_on_card: Rehearse, patch: pytest.MonkeyPatch, name: str, steps: int, probability: float
) -> dict[str, Any]:
    script = LOOP.replace("MODEL", MODELS[name]).replace("STEPS", str(steps))
    faults = f"probability={probability},seed={len(name)},length=6,after=12"
    patch.setenv("GHOSTGPU_ALLOCATION_FAULTS", faults)
    request = {"name": "surviving-oom", "options": {}}
    done = rehearse_on_card(script, tricks=[request], steps=0)
    path = done.run_dir.parent / "steps.json"
    assert path.exists(), f"{done.stdout}\n{done.stderr}"
    (report,) = done.report["changes"]
    assert "chunks" in (report["did"] or ""), "no allocation has failed"
    result: dict[str, Any] = json.loads(path.read_text())
    return result


def check(result: dict[str, Any], steps: int) -> None:
    assert result["others"] == []
    assert result["finished"] + len(result["reports"]) == steps
    assert all("batch of" in report for report in result["reports"])
    assert result["finished"] > steps // 2
    assert result["held"][0] == result["held"][1], "memory leaks"


def test_steps_finish_or_say_why_not_when_allocations_fail_at_random(
    rehearse_on_card: Rehearse, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(run(rehearse_on_card, monkeypatch, "mlp", 30, 0.1), 30)


@pytest.mark.at_length
@pytest.mark.parametrize("name", MODELS)
def test_a_thousand_steps_leave_nothing_behind(
    name: str, rehearse_on_card: Rehearse, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(run(rehearse_on_card, monkeypatch, name, 1000, 0.05), 1000)
