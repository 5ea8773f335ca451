"""LoRA of peft, and 8-bit optimizers of bitsandbytes and torchao.

Their folders, beside the reference environment, are made here, once: they need no environment of
their own, only a place on the path.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY, Rehearse, needs_torch

pytestmark = [needs_torch, pytest.mark.at_length]

ENVIRONMENTS = REPOSITORY / "tests" / "environments"


def installed(name: str) -> Path:
    """The folder with what a list of requirements names."""
    requirements = ENVIRONMENTS / f"{name}.txt"
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    cache = Path(os.environ.get("GHOSTGPU_TEST_CACHE") or home / "ghostgpu-test")
    folder = cache / name
    made_from = folder / ".made-from"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made_from.exists() or made_from.read_text() != requirements.read_text():
            words = [*("-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--upgrade")]
            words += ["--no-cache-dir", "--target", str(folder), "-r", str(requirements)]
            done = subprocess.run([sys.executable, *words], capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f"{requirements.name} could not be installed: {done.stderr[-300:]}")
            made_from.write_text(requirements.read_text())
    return folder


@pytest.fixture(scope="module")
def libraries() -> Path:
    return installed("adapters")


SCRIPT = """
import sys
sys.path.append(FOLDER)
import torch
from torch import nn
model = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(4))).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(2):
    model(torch.randn(8, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
    for group in optimizer.param_groups:
        group["lr"] = 1e-4
parameters = sum(each.numel() for each in model.parameters())
gradients = sum(each.grad.numel() for each in model.parameters() if each.grad is not None)
state = {
    str(getattr(value, "codes", value).dtype): True
    for each in optimizer.state.values() for value in each.values()
    if isinstance(value, torch.Tensor) and value.numel() > 1 << 18
}
print(type(optimizer).__module__.split(".")[0], parameters, gradients, *state)
"""


def run(rehearse_on_card: Rehearse, folder: Path, name: str, **options: str) -> tuple[Any, str]:
    script = SCRIPT.replace("FOLDER", repr(str(folder)))
    request = {"name": name, "options": options}
    done = rehearse_on_card(script, tricks=[request], steps=0)
    assert done.code == 0, done.stderr
    (change,) = done.report["changes"]
    return done.stdout.split(), change["did"]


def test_only_the_adapters_of_lora_get_gradients(
    rehearse_on_card: Rehearse, libraries: Path
) -> None:
    said, did = run(rehearse_on_card, libraries, "lora", rank="8", targets="all-linear")
    # Two factors of rank 8 for each layer but the last.
    trained = 3 * 2 * 8 * 1024
    assert said[:3] == ["torch", str(4 * (1024 + 1) * 1024 + trained), str(trained)]
    assert did.startswith("3 layers of Sequential have adapters of rank 8")


def test_the_state_of_an_8_bit_optimizer_has_8_bits(
    rehearse_on_card: Rehearse, libraries: Path
) -> None:
    said, did = run(rehearse_on_card, libraries, "eight-bit-optimizer")
    assert said[0] == "bitsandbytes" and said[3:] == ["torch.uint8"]
    assert did == "AdamW with 8-bit state of bitsandbytes"


def test_torchao_serves_where_bitsandbytes_is_not_installed(rehearse_on_card: Rehearse) -> None:
    folder = installed("torchao")
    said, did = run(rehearse_on_card, folder, "eight-bit-optimizer")
    assert said[0] == "torchao" and said[3:] == ["torch.uint8"]
    assert did == "AdamW with 8-bit state of torchao"
