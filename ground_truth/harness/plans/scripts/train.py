"""Trains one of a dozen models with made-up data: `python train.py gpt2 --batch-size 16`.

The loop is one that people write. It says how long each step took, from the moment at which its
batch is on the host.
"""

from __future__ import annotations

import argparse
import time

import torch
from models import MODELS, OneSample
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("model", choices=MODELS)
parser.add_argument("--batch-size", type=int, required=True)
parser.add_argument("--steps", type=int, default=20)
arguments = parser.parse_args()

torch.manual_seed(0)
torch.set_float32_matmul_precision("high")
job = MODELS[arguments.model]()
model = job.model.cuda().train()
optimizer = job.optimizer(model)
data = OneSample(job.sample, arguments.batch_size * arguments.steps)

for step, batch in enumerate(DataLoader(data, batch_size=arguments.batch_size)):
    begin = time.perf_counter()
    batch = {name: values.cuda() for name, values in batch.items()}
    with torch.autocast("cuda", dtype=torch.bfloat16, enabled=job.is_mixed):
        loss = job.loss(model, batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f} {time.perf_counter() - begin:.5f} s", flush=True)
