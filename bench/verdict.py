"""What a verdict on a whole training costs, compared with a plain rehearsal of three steps.

    make bench-verdict

Two ordinary trainings, BERT-base and ResNet-50, with ten epochs, a short last batch, evaluation and
a checkpoint. `plain` is `ghostgpu run --steps 3 --no-retry`; `verdict` is `ghostgpu run`: coverage,
the need found by replay, and the rehearsal that confirms it. The CPU time of all processes of a
rehearsal is compared, so that a busy machine makes little difference; a verdict that its budget cut
short does not count. The budget is the default one, because how much is rehearsed follows from it.
Rounds alternate; figures are medians.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[1]
RELEASE = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target")) / "release"
PROGRAM = os.environ.get("GHOSTGPU_COMMAND") or str(RELEASE / "ghostgpu")

ROUNDS = 5
MOST_RATIO = 3.0
PR_SET_CHILD_SUBREAPER = 36

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


class Taken(NamedTuple):
    """What one command took."""

    processor_s: float
    wall_s: float


def processor_seconds() -> float:
    """CPU seconds of all descendants of this process that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def take(folder: Path, *options: str) -> Taken:
    words = [PROGRAM, "run", "--gpu", "3090", "--python", sys.executable, "--json", "answer.json"]
    before, began = processor_seconds(), time.monotonic()
    done = subprocess.run(
        [*words, *options, "train.py"], cwd=folder, capture_output=True, text=True, check=False
    )
    wall_s = time.monotonic() - began
    if done.returncode != 0:
        sys.exit(f"exit code {done.returncode}\n{done.stdout}{done.stderr}")
    wait_for_orphans()
    return Taken(processor_seconds() - before, wall_s)


def wait_for_orphans() -> None:
    """Reap copies of a script that waited for further rehearsals: nothing else waits for them."""
    try:
        while True:
            os.wait()
    except ChildProcessError:
        return


def main() -> None:
    # Processes whose parent has ended become our children, so that they are counted.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    is_slow = False
    print("seconds of the processor (and by the clock)")
    print(f"{'training':12} {'plain':>14} {'verdict':>15} {'ratio':>6}   parts covered")
    for name, script in TRAININGS.items():
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            (folder / "train.py").write_text(script)
            take(folder)  # fills the cache of cuDNN's answers
            plain, verdict = [], []
            for _ in range(ROUNDS):
                plain.append(take(folder, "--steps", "3", "--no-retry"))
                verdict.append(take(folder))
                answer = json.loads((folder / "answer.json").read_text())
                if answer["not_reached"]:
                    sys.exit(f"the budget cut the verdict short: {answer['not_reached']}")
        middle = [
            [statistics.median(column) for column in zip(*rounds)] for rounds in (plain, verdict)
        ]
        ratio = middle[1][0] / middle[0][0]
        is_slow |= ratio > MOST_RATIO
        figures = " ".join(f"{processor:6.1f} ({wall:5.1f})" for processor, wall in middle)
        print(f"{name:12} {figures} {ratio:7.2f}   {len(answer['covered']):13}")
    if is_slow:
        sys.exit(f"a verdict took more than {MOST_RATIO:g} times a plain rehearsal")


if __name__ == "__main__":
    main()
