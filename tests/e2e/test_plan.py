"""`ghostgpu plan`: the tricks that make a job fit, each rehearsed before it is shown."""

from __future__ import annotations

import time

import pytest
from conftest import Ask

# Blocks whose activations are most of the memory, so that checkpointing some of them is enough.
TRAINING = """
import torch
from torch.utils.data import DataLoader, TensorDataset
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.wide, self.narrow = torch.nn.Linear(256, 2048), torch.nn.Linear(2048, 256)
    def forward(self, x):
        return x + self.narrow(torch.nn.functional.gelu(self.wide(x)))
data = TensorDataset(torch.randn(64, 512, 256))
model = torch.nn.Sequential(*[Block() for _ in range(6)]).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for epoch in range(2):
    for (inputs,) in DataLoader(data, batch_size=32):
        model(inputs.cuda()).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
"""
CARD = ("--gpu", "h200", "--memory", "1700MiB", "--margin", "64MiB")
PEAKS = ("peak_allocated_bytes", "peak_reserved_bytes", "peak_device_bytes")


@pytest.mark.at_length
def test_what_is_recommended_fits_with_the_same_figures_and_is_known_the_second_time(
    ask: Ask,
) -> None:
    words = ("plan", *CARD, "--rehearsals", "12", "train.py")
    done = ask(*words, script=TRAINING).expect(0)
    assert done["result"] == "found"
    best = done["candidates"][done["recommended"]]
    assert best["headroom_bytes"] >= 64 << 20
    flags = best["flags"].split()
    plain = ask("run", *CARD, "--no-retry", *flags, "train.py", script=TRAINING).expect(0)
    assert [plain[name] for name in PEAKS] == [best[name] for name in PEAKS]
    fewer = [each for each in done["candidates"] if each["outcome"] == "does-not-fit"]
    assert fewer, "the least amount is known by what is not enough"
    started = time.monotonic()
    again = ask(*words, script=TRAINING).expect(0)
    assert again["candidates"] == done["candidates"]
    assert time.monotonic() - started < 10


@pytest.mark.parametrize(
    ("script", "code", "sentence"),
    [
        ("raise ValueError('no data')", 1, "ghostgpu: the script failed: it ended with"),
        ("print('nothing')", 6, "the script put nothing on the card"),
    ],
)
def test_a_job_with_another_problem_is_told_so(
    ask: Ask, script: str, code: int, sentence: str
) -> None:
    done = ask("plan", "--gpu", "h200", "train.py", script=script)
    assert done.code == code
    assert sentence in done.stderr + done.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--keep", "numerics", "--allow", "precision"), "contradict each other"),
        (("--memory", "100MiB"), "the CUDA context alone takes"),
        (("--arg", "--batch-size"), "--largest-batch, which was not given"),
    ],
)
def test_questions_that_make_no_sense_are_refused(
    ask: Ask, words: tuple[str, ...], sentence: str
) -> None:
    done = ask("plan", "--gpu", "h200", *words, "train.py", script="import torch")
    assert done.code == 2
    assert sentence in done.stderr
