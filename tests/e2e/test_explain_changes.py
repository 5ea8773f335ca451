"""`ghostgpu explain --script`: advice that changes the script is rehearsed, with the same figures
as a script that was changed by hand."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from conftest import PROGRAM, PYTHONS, REPOSITORY, Rehearse

TIMEOUT_S = 600

FIGURES = ("peak_allocated_bytes", "peak_reserved_bytes", "peak_device_bytes")

MESSAGE = """\
Traceback (most recent call last):
  File "train.py", line 40, in {function}
    {code}
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 64.00 MiB. GPU 0 has a total \
capacity of 1.76 GiB of which 29.19 MiB is free. Including non-PyTorch memory, this process has \
1.72 GiB memory in use. Of the allocated memory 1.07 GiB is allocated by PyTorch, and 45.99 MiB is \
reserved by PyTorch but unallocated.
"""

FULL = MESSAGE.format(function="<module>", code="out = model(x)")
EVALUATING = MESSAGE.format(function="evaluate", code="out = model(x)")
IN_THE_OPTIMIZER = MESSAGE.format(function="<module>", code="optimizer.step()")
GROWING = "".join(
    f"step {step} memory allocated: {200 + 50 * step} MiB\n" for step in range(1, 19)
) + MESSAGE.format(function="<module>", code="loss = criterion(model(inputs), inputs)")

VISION = """
import argparse, torch
from torch.utils.checkpoint import checkpoint
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--image-size", type=int, default=96, help="side of the images")
args = parser.parse_args()

class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)

    def forward(self, x):
        return F.relu(x + self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 64, 3, padding=1)
        self.blocks = nn.Sequential(*[Residual(64) for _ in range(6)])
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.stem(x))
        x = self.blocks(x)
        return self.head(x.mean((2, 3)))

side = args.image_size
data = TensorDataset(torch.zeros(96, 3, side, side), torch.zeros(96, dtype=torch.long))
model = Net().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

def train():
    model.train()
    for x, y in DataLoader(data, batch_size=32):
        x, y = x.cuda(), y.cuda()
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

def evaluate():
    model.eval()
    for x, y in DataLoader(data, batch_size=96):
        out = model(x.cuda())

for epoch in range(30):
    train()
"""

EVALUATION = VISION.replace("    train()\n", "    train()\n    evaluate()\n")

LANGUAGE = """
import torch
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel
torch.manual_seed(0)
config = GPT2Config(n_layer=8, n_embd=512, n_head=8, vocab_size=2000, n_positions=512)
model = GPT2LMHeadModel(config)
# made
model.cuda().train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for ids in DataLoader(torch.zeros(80, 512, dtype=torch.long), batch_size=8):
    ids = ids.cuda()
    out = model(input_ids=ids, labels=ids)
    out.loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""

WIDE = """
import torch
model = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096) for _ in range(8)])
model.cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(30):
    x = torch.ones(64, 4096, device="cuda")
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""

KEEPING = """
import torch
model = torch.nn.Sequential(
    torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 1024)
).cuda()
criterion = torch.nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for step in range(30):
    inputs = torch.randn(2048, 1024, device="cuda")
    loss = criterion(model(inputs), inputs)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    check = criterion(model(inputs), inputs)
    losses.append(check)
print(sum(losses))
"""


@dataclass(frozen=True)
class Case:
    """A log, a script and a card; what works, with the edits that do the same by hand."""

    log: str
    script: str
    memory: str
    works: dict[str, dict[str, str]]
    commands: dict[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    not_rehearsed: dict[str, str] = field(default_factory=dict)


AUTOCAST = 'with torch.autocast("cuda", dtype=torch.bfloat16):'

CASES = {
    "a vision script with its own loop": Case(
        FULL,
        VISION,
        "2200MiB",
        {
            "gradient checkpointing": {
                "        x = self.blocks(x)": (
                    "        for block in self.blocks:\n"
                    "            x = checkpoint(block, x, use_reentrant=False)"
                )
            },
            "bfloat16 autocast": {"        loss = F": f"        {AUTOCAST}\n            loss = F"},
            "shorter sequences or smaller images": {"default=96": "default=48"},
        },
        {
            "gradient checkpointing": "# where each Residual is called",
            "shorter sequences or smaller images": "python train.py --image-size 48",
        },
    ),
    "a script with transformers": Case(
        FULL,
        LANGUAGE,
        "2300MiB",
        {
            "gradient checkpointing": {
                "# made": "model.gradient_checkpointing_enable(); model.config.use_cache = False"
            },
            "shorter sequences or smaller images": {"torch.zeros(80, 512": "torch.zeros(80, 256"},
        },
        {
            "gradient checkpointing": "model.gradient_checkpointing_enable()",
            "shorter sequences or smaller images": "max_length=256",
        },
    ),
    "an optimizer whose state is too large": Case(
        IN_THE_OPTIMIZER,
        WIDE,
        "2400MiB",
        {
            "an optimizer with less state": {"AdamW": "Adafactor"},
            "bfloat16 weights": {
                "model.cuda()": "model.to(torch.bfloat16).cuda()",
                "model(x)": "model(x.to(torch.bfloat16))",
            },
        },
        {"an optimizer with less state": "torch.optim.Adafactor(model.parameters(), lr=...)"},
        not_rehearsed={
            "training adapters only (LoRA)": "needs peft",
            "sharding over several cards, or offloading to the CPU": "needs several cards",
        },
    ),
    "a script that grows until the card is full": Case(
        GROWING,
        KEEPING,
        "1250MiB",
        # Not `detach()`: the result of `mse_loss` keeps the memory of all its squares.
        {"keeping numbers instead of tensors": {"append(check)": "append(check.item())"}},
        {"keeping numbers instead of tensors": "train.py:16: losses.append(check.item())"},
        ("--steps", "0"),
        {"detaching what is carried from step to step": "lint finds no such line in train.py"},
    ),
    "a script that grows and fits for as long as it is watched": Case(
        GROWING,
        KEEPING,
        "60GiB",
        {"keeping numbers instead of tensors": {"append(check)": "append(check.item())"}},
        options=("--steps", "20"),
    ),
}


def explain(folder: Path, case: Case) -> tuple[int, dict[str, Any]]:
    (folder / "error.log").write_text(case.log)
    (folder / "train.py").write_text(case.script)
    words = [str(PROGRAM), "explain", "error.log", "--json", "--gpu", "h200"]
    words += ["--memory", case.memory, "--python", PYTHONS[0], "--script", "train.py"]
    done = subprocess.run(
        [*words, *case.options],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.fixture(autouse=True)
def our_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GHOSTGPU_AGENT_DIR", str(REPOSITORY / "python/ghostgpu/agent"))
    monkeypatch.delenv("GHOSTGPU_LIBRARY", raising=False)


def by_hand(script: str, edits: dict[str, str]) -> str:
    for old, new in edits.items():
        assert old in script, old
        script = script.replace(old, new)
    return script


QUICK = ("an optimizer whose state is too large",)
"""Cases that also run in `make test`."""


@pytest.mark.reference
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.at_length) for name in CASES],
)
def test_what_works_has_the_figures_of_the_script_changed_by_hand(
    name: str, tmp_path: Path, rehearse_reference: Rehearse
) -> None:
    case = CASES[name]
    code, answer = explain(tmp_path, case)
    rehearsed = answer["rehearsed"]
    assert code == 0, rehearsed
    works = {each["what"]: each for each in rehearsed["works"]}
    for what, edits in case.works.items():
        assert what in works, rehearsed
        assert works[what]["did"], works[what]
        extent = case.options if "--steps" in case.options else ()
        options = ("--memory", case.memory, *extent)
        changed = rehearse_reference(by_hand(case.script, edits), *options).expect(0)
        assert [works[what][each] for each in FIGURES] == [changed[each] for each in FIGURES], what
    for what, command in case.commands.items():
        assert command in works[what]["command"], works[what]
    not_rehearsed = {
        each["what"]: each["not_rehearsed_because"] for each in rehearsed["not_rehearsed"]
    }
    for what, because in case.not_rehearsed.items():
        assert because in not_rehearsed[what], not_rehearsed
    # Every piece of advice was rehearsed, or the answer says why not.
    told = {*works, *not_rehearsed, *(each["what"] for each in rehearsed["fails"])}
    for advice in answer["advice"]:
        if rehearsed["as_it_is"]["outcome"] == "does-not-fit":
            is_told = any(what.startswith(advice["what"]) for what in told)
            is_batch = advice["what"].startswith("a smaller batch, ")
            assert is_told or (is_batch and any("a batch of " in what for what in told)), advice


def test_growth_is_seen_where_the_card_is_large_enough(tmp_path: Path) -> None:
    name = "a script that grows and fits for as long as it is watched"
    code, answer = explain(tmp_path, CASES[name])
    assert code == 0
    as_it_is = answer["rehearsed"]["as_it_is"]
    assert as_it_is["outcome"] == "fits"
    assert as_it_is["stopped_after_steps"] == 20
    # The output of the hidden layer, of its activation and of the last layer.
    assert as_it_is["grows_by_bytes"] >= 2048 * (4096 + 1024) * 4
    (works,) = answer["rehearsed"]["works"]
    assert "no more growth of " in works["did"]


def test_evaluation_is_reached_and_fixed(tmp_path: Path, rehearse_reference: Rehearse) -> None:
    case = Case(EVALUATING, EVALUATION, "4GiB", {})
    code, answer = explain(tmp_path, case)
    rehearsed = answer["rehearsed"]
    assert code == 0
    assert "(forward), at train.py:" in rehearsed["as_it_is"]["place"], rehearsed["as_it_is"]
    works = {each["what"]: each for each in rehearsed["works"]}
    # The same figures as for a script with one epoch of as many batches.
    short = EVALUATION.replace("range(30)", "range(1)")
    edits = {
        "evaluation without autograd": {
            "        out = model": "        with torch.no_grad():\n            out = model"
        },
        "a smaller evaluation batch": {"batch_size=96": "batch_size=1"},
    }
    for what, edit in edits.items():
        options = ("--memory", case.memory, "--steps", "0")
        changed = rehearse_reference(by_hand(short, edit), *options).expect(0)
        assert [works[what][each] for each in FIGURES] == [changed[each] for each in FIGURES], what
    assert "train.py:" in works["evaluation without autograd"]["command"]
    not_rehearsed = {
        each["what"]: each["not_rehearsed_because"] for each in rehearsed["not_rehearsed"]
    }
    assert not_rehearsed["outputs moved to the CPU right away"] == (
        "lint finds no such line in train.py"
    )


@pytest.mark.at_length
def test_a_script_that_the_change_breaks_is_told_in_vain(tmp_path: Path) -> None:
    training = EVALUATION.replace("model.train()", "model.eval()").replace("    evaluate()\n", "")
    code, answer = explain(tmp_path, Case(EVALUATING, training, "2200MiB", {}))
    fails = {each["what"]: each["because"] for each in answer["rehearsed"]["fails"]}
    assert "does not require grad" in fails["evaluation without autograd"], answer["rehearsed"]
    assert code in (0, 3)
