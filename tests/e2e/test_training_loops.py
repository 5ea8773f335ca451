"""The smoke set: what training scripts do, with every torch that is supported."""

from __future__ import annotations

import json
import re

import pytest
from conftest import MIB, PAGE, Rehearse

# Two layers of 1024 × 1024 and their biases: 2,099,200 parameters.
MODEL = """
import torch
model = torch.nn.Sequential(
    torch.nn.Linear(1024, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024)
).cuda()
"""
PARAMETER_BYTES = 2_099_200 * 4


@pytest.mark.every_torch
def test_a_plain_loop_is_stopped_after_three_steps_and_measured(rehearse: Rehearse) -> None:
    # The script's own reading at its end must be what the answer says.
    done = rehearse(
        MODEL
        + """
import json
optimizer = torch.optim.Adam(model.parameters())
try:
    for _ in range(100):
        loss = model(torch.randn(64, 1024, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
finally:
    with open("own.json", "w") as file:
        json.dump([torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()], file)
"""
    ).expect(0)
    assert done["fits"] is True
    assert done["steps"] == 3
    assert done["stopped_by_step_limit"] is True
    own = json.loads((done.folder / "own.json").read_text())
    assert [done["peak_allocated_bytes"], done["peak_reserved_bytes"]] == own
    # Weights, gradients and Adam's two moments.
    assert done["peak_allocated_bytes"] > 4 * PARAMETER_BYTES
    assert done["peak_reserved_bytes"] % PAGE == 0
    assert done["peak_device_bytes"] > done["peak_reserved_bytes"] + 400 * MIB
    assert done["headroom_bytes"] == done["gpu"]["total_bytes"] - done["peak_device_bytes"]
    assert [each["step"] for each in done["step_peaks"]] == [1, 2, 3]
    assert "virtual NVIDIA H200" in done.stderr


@pytest.mark.every_torch
def test_autocast_with_a_gradient_scaler_goes_through_all_its_steps(rehearse: Rehearse) -> None:
    done = rehearse(
        MODEL
        + """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scaler = torch.amp.GradScaler("cuda")
for _ in range(5):
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.float16):
        loss = model(torch.randn(64, 1024, device="cuda")).square().mean()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
""",
        "--steps",
        "0",
    ).expect(0)
    # A scaler that saw infinities would have skipped the optimizer's step.
    assert done["steps"] == 5


def test_gradient_checkpointing_saves_memory(rehearse: Rehearse) -> None:
    script = """
import sys, torch
from torch.utils.checkpoint import checkpoint
blocks = torch.nn.ModuleList(
    torch.nn.Sequential(torch.nn.Linear(256, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 256))
    for _ in range(8)
).cuda()
optimizer = torch.optim.AdamW(blocks.parameters())
for _ in range(3):
    x = torch.randn(4096, 256, device="cuda", requires_grad=True)
    for block in blocks:
        x = checkpoint(block, x, use_reentrant=False) if CHECKPOINT else block(x)
    x.mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
    plain = rehearse(script.replace("CHECKPOINT", "False")).expect(0)["peak_allocated_bytes"]
    saving = rehearse(script.replace("CHECKPOINT", "True")).expect(0)["peak_allocated_bytes"]
    # Each block keeps two tensors of 32 MiB for its backward; checkpointed, one block at a time.
    assert plain - saving > 7 * 2 * 32 * MIB * 0.9


def test_worker_processes_of_a_data_loader_feed_the_card(rehearse: Rehearse) -> None:
    done = rehearse(
        """
import torch
from torch.utils.data import DataLoader, TensorDataset

def main():
    data = TensorDataset(torch.arange(64.0).reshape(64, 1).expand(64, 32).clone())
    model = torch.nn.Linear(32, 1).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = 0
    for (batch,) in DataLoader(data, batch_size=8, num_workers=2, pin_memory=True):
        seen += int(batch.sum())  # on the CPU: the real values
        model(batch.cuda(non_blocking=True)).mean().backward()
        optimizer.step()
    print("seen", seen)

if __name__ == "__main__":
    main()
""",
        "--steps",
        "0",
    ).expect(0)
    assert done["steps"] == 8
    assert f"seen {32 * sum(range(64))}" in done.stdout


def test_a_script_without_an_optimizer_runs_to_its_end(rehearse: Rehearse) -> None:
    done = rehearse(
        MODEL
        + """
model.eval()
with torch.no_grad():
    for _ in range(10):
        result = model(torch.randn(64, 1024, device="cuda")).cpu()
print("all", tuple(result.shape), float(result.abs().max()))
"""
    ).expect(0)
    assert done["steps"] == 0
    assert done["stopped_by_step_limit"] is False
    # Numbers that are copied together differ, between a quarter and three quarters.
    largest = re.search(r"all \(64, 1024\) (\S+)", done.stdout)
    assert largest is not None
    assert 0.5 < float(largest[1]) <= 0.75
    # The weights, a few small tensors, and at most a workspace for cuBLAS of 32 MiB.
    assert 0 < done["peak_allocated_bytes"] - PARAMETER_BYTES < 34 * MIB


def test_attention_in_half_precision_trains(rehearse: Rehearse) -> None:
    done = rehearse(
        """
import torch
layer = torch.nn.TransformerEncoderLayer(256, 4, batch_first=True, dropout=0.1).cuda()
optimizer = torch.optim.AdamW(layer.parameters(), fused=True)
for _ in range(3):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = layer(torch.randn(8, 128, 256, device="cuda")).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
    ).expect(0)
    assert done["steps"] == 3
    assert done["refused"] == []
