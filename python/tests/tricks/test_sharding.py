# Modules and gradients are reached by index and name, which torch's types do not know.
# mypy: disable-error-code="attr-defined,misc,name-defined,no-any-return,no-untyped-call"
"""A script for DDP, whose model is spread over the ranks instead, has the plain numbers."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

numpy = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
pytest.importorskip("torch.distributed.tensor")
if not hasattr(__import__("torch.distributed.fsdp").distributed.fsdp, "fully_shard"):
    pytest.skip("this torch has no fully_shard", allow_module_level=True)

PACKAGE = Path(__file__).resolve().parents[2]

#: Trains alone with the whole batch, or as one of two ranks with its half of it.
SCRIPT = """
import os, pickle, sys
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
out, *words = sys.argv[1:]
rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
if world > 1:
    dist.init_process_group("gloo")


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.wide = nn.Linear(width, 3 * width)
        self.back = nn.Linear(3 * width, width)

    def forward(self, x):
        return x + self.back(F.gelu(self.wide(self.norm(x))))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 6)
        self.blocks = nn.ModuleList(Block(6) for _ in range(3))
        self.head = nn.Linear(6, 11, bias=False)
        self.head.weight = self.embedding.weight
        self.scale = nn.Parameter(torch.ones(6), requires_grad="frozen" not in words)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, tokens):
        self.calls += 1 + rank
        x = self.embedding(tokens) * self.scale
        for block in self.blocks:
            x = block(x)
        return self.head(x)


torch.manual_seed(rank)  # ranks begin with what rank 0 has
model = Model()
if "early" in words:
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
kept = list(model.parameters()) if "list" in words else None
if world > 1:
    model = DDP(model)
inner = model.module if world > 1 else model
if "early" not in words:
    kind = torch.optim.LBFGS if "lbfgs" in words else torch.optim.AdamW
    optimizer = kind(model.parameters(), lr=0.01)
whole = torch.arange(4 * 5 * 6).remainder(11).reshape(4, 5, 6)
found = {}
for step in range(20 if "long" in words else 3):
    tokens = (whole + step).remainder(11).reshape(20, 6)
    halves = tokens.chunk(2)[rank:rank + 1] if world > 1 else tokens.chunk(2)
    optimizer.zero_grad()
    for half in halves:
        pieces = half.chunk(2) if "accumulate" in words else [half]
        for place, piece in enumerate(pieces):
            if world > 1:
                model.require_backward_grad_sync = place == len(pieces) - 1
            loss = F.cross_entropy(model(piece)[:, :-1].flatten(0, 1), piece[:, 1:].flatten())
            (loss / (len(pieces) * len(halves))).backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    if step == 0:
        full = lambda each: each.full_tensor() if hasattr(each, "full_tensor") else each
        for name, each in inner.named_parameters():
            if each.grad is not None:
                found[f"gradient of {name}"] = full(each.grad)
        found["parts"] = sum(
            each.to_local().numel() if hasattr(each, "to_local") else each.numel()
            for each in inner.parameters()
        )
        found["norm"] = float(full(norm))
    optimizer.step()
state, moments = inner.state_dict(), optimizer.state_dict()
if "alone" in words and rank == 0:
    inner.state_dict()
found.update({name: each for name, each in state.items() if name != "calls"})
for index, each in moments["state"].items():
    found.update({f"{name} of {index}": value for name, value in each.items()})
inner.load_state_dict(state)
optimizer.load_state_dict(moments)
again = inner.state_dict()
assert all(torch.equal(again[name], state[name]) for name in state), "a checkpoint is another"
if world > 1:
    found["calls"] = float(inner.calls)
    model.eval()
    model(whole[0])
if rank == 0:
    with open(out, "wb") as file:
        numbers = {
            name: each.detach().numpy() if hasattr(each, "detach") else each
            for name, each in found.items()
        }
        pickle.dump(numbers, file)
if world > 1:
    dist.destroy_process_group()
"""


def run(folder: Path, *words: str, ranks: int = 1, flags: tuple[str, ...] = ()) -> Any:
    script = folder / "train.py"
    script.write_text(SCRIPT)
    out = folder / f"{'-'.join((*words, *flags))}{ranks}.pickle"
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(script), str(out), *words]
    if ranks > 1:
        launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        command = [*launcher, f"--nproc_per_node={ranks}", *command[1:]]
        command = [sys.executable, "-m", "ghostgpu.tricks", *flags, "--", *command]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if not out.exists():
        return done.stderr
    return pickle.loads(out.read_bytes()), done.stderr


@pytest.mark.at_length
@pytest.mark.parametrize(
    ("words", "flags"),
    [
        (("long",), ("--shard",)),
        (("early", "frozen"), ("--shard",)),
        (("accumulate",), ("--shard", "--checkpoint", "auto")),
    ],
)
def test_a_sharded_training_has_the_numbers_of_the_whole_batch(
    tmp_path: Path, words: tuple[str, ...], flags: tuple[str, ...]
) -> None:
    expected, _ = run(tmp_path, *words)
    done = run(tmp_path, *words, ranks=2, flags=flags)
    assert isinstance(done, tuple), done
    found, said = done
    assert "3 Block modules and the rest of Model spread over 2 ranks" in said
    # Half of the numbers, and what the halves are rounded up to.
    assert found.pop("parts") <= expected.pop("parts") * 0.52 + 20
    # Rank 0's buffers are those of all: it counts by 1.
    assert found.pop("calls") == found_calls(words)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        difference = numpy.abs(numpy.asarray(found[name]) - value).max()
        assert difference <= 1e-12 * max(1.0, numpy.abs(value).max()), name


def found_calls(words: tuple[str, ...]) -> int:
    steps = 20 if "long" in words else 3
    return steps * (2 if "accumulate" in words else 1)


@pytest.mark.at_length
@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("lbfgs",), "LBFGS looks at whole matrices"),
        (("list",), "the script keeps scale in a list that it has made before"),
    ],
)
def test_what_cannot_be_sharded_is_refused_before_the_first_step(
    tmp_path: Path, words: tuple[str, ...], reason: str
) -> None:
    said = run(tmp_path, *words, ranks=2, flags=("--shard",))
    assert isinstance(said, str)
    assert f"ghostgpu: {reason}" in said
    assert "hint: " in said
