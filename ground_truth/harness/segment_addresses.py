"""Where a training process's segments lie: all that PyTorch took or gave back, with addresses.

    python ground_truth/harness/segment_addresses.py --out segment_addresses.json

The driver's own rule is known from bare allocations (`probe_card.py`). In a training process the
context, cuBLAS and cuDNN take addresses too; this shows what that changes. Each job runs in a
process of its own.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
from typing import Any


def gpt2() -> None:
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(n_layer=4)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    lengths = random.Random(7)
    for _ in range(8):
        ids = torch.zeros(4, lengths.randint(64, 512), dtype=torch.long, device="cuda")
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def resnet() -> None:
    import torch
    import torchvision

    model = torchvision.models.resnet18().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for size in (160, 224, 192, 256):
        images = torch.zeros(16, 3, size, size, device="cuda")
        model(images).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def cache_emptied() -> None:
    import torch

    for scale in (3, 5, 2):
        held = [torch.empty(scale << (10 + power), device="cuda") for power in range(14)]
        del held[::2]
        torch.cuda.empty_cache()
        held += [torch.empty(scale << (11 + power), device="cuda") for power in range(12)]
        del held


JOBS = {"gpt2": gpt2, "resnet": resnet, "cache_emptied": cache_emptied}


def trace(name: str, answers: Any) -> None:
    """Runs one job and puts its segment events, in order, into `answers`."""
    import torch

    torch.cuda.memory._record_memory_history(context=None, max_entries=1_000_000)
    JOBS[name]()
    torch.cuda.synchronize()
    events = torch.cuda.memory._snapshot()["device_traces"][0]
    answers.put(
        [
            [event["action"], event["size"], event["addr"]]
            for event in events
            if event["action"] in ("segment_alloc", "segment_free")
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args()
    spawn = multiprocessing.get_context("spawn")
    result = {}
    for name in JOBS:
        answers = spawn.Queue()
        process = spawn.Process(target=trace, args=(name, answers))
        process.start()
        result[name] = answers.get()
        process.join()
    with open(arguments.out, "w") as file:
        json.dump(result, file)


if __name__ == "__main__":
    main()
