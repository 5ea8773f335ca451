"""What a verdict on a whole training costs, beside a plain rehearsal of three steps.

    make bench-verdict

Two ordinary trainings, BERT-base and ResNet-50, with ten epochs, a short last batch, evaluation and
a checkpoint. `plain` is `ghostgpu run --steps 3 --no-retry`; `verdict` is `ghostgpu run`: coverage,
the smallest memory found by replay, and the rehearsal that confirms it. Rounds alternate, so that
whatever else the machine does falls on both; figures are medians.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
RELEASE = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target")) / "release"
PROGRAM = os.environ.get("GHOSTGPU_COMMAND") or str(RELEASE / "ghostgpu")

ROUNDS = 5
MOST_RATIO = 3.0

LOOP = """
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for epoch in range(10):
    model.train()
    for batch in DataLoader(data, BATCH, shuffle=True):
        loss = loss_of([part.cuda() for part in batch])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        for batch in DataLoader(data, 2 * BATCH):
            loss_of([part.cuda() for part in batch])
    torch.save(model.state_dict(), "model.pt")
"""

TRAININGS = {
    "BERT-base": """
import torch
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertForSequenceClassification

BATCH = 16
data = TensorDataset(torch.randint(0, 30000, (2000, 128)), torch.randint(0, 2, (2000,)))
model = BertForSequenceClassification(BertConfig()).cuda()


def loss_of(batch):
    return model(input_ids=batch[0], labels=batch[1]).loss

"""
    + LOOP,
    "ResNet-50": """
import torch
import torchvision
from torch.utils.data import DataLoader, TensorDataset

BATCH = 64
data = TensorDataset(torch.randn(1000, 3, 64, 64), torch.randint(0, 1000, (1000,)))
model = torchvision.models.resnet50().cuda()


def loss_of(batch):
    return torch.nn.functional.cross_entropy(model(batch[0]), batch[1])

"""
    + LOOP,
}


def seconds(folder: Path, *options: str) -> float:
    words = [PROGRAM, "run", "--gpu", "3090", "--python", sys.executable, "--json", "answer.json"]
    began = time.monotonic()
    done = subprocess.run(
        [*words, *options, "train.py"], cwd=folder, capture_output=True, text=True, check=False
    )
    took = time.monotonic() - began
    if done.returncode != 0:
        sys.exit(f"exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return took


def main() -> None:
    is_slow = False
    print(f"{'training':12} {'plain':>8} {'verdict':>8} {'ratio':>6}   covered")
    for name, script in TRAININGS.items():
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            (folder / "train.py").write_text(script)
            seconds(folder)  # fills the cache of cuDNN's answers
            plain, verdict = [], []
            for _ in range(ROUNDS):
                plain.append(seconds(folder, "--steps", "3", "--no-retry"))
                verdict.append(seconds(folder))
            answer = json.loads((folder / "answer.json").read_text())
        ratio = statistics.median(verdict) / statistics.median(plain)
        is_slow |= ratio > MOST_RATIO
        covered = ", ".join(each["part"] for each in answer["covered"])
        print(
            f"{name:12} {statistics.median(plain):7.1f}s {statistics.median(verdict):7.1f}s "
            f"{ratio:6.2f}   {covered}"
        )
    if is_slow:
        sys.exit(f"a verdict took more than {MOST_RATIO:g} times a plain rehearsal")


if __name__ == "__main__":
    main()
