"""Trains a decoder of the size of Llama 2 7B in bfloat16: `python seven_billion.py`."""

from __future__ import annotations

import argparse

import torch
from torch.utils.data import DataLoader, Dataset
from transformers import AutoModelForCausalLM, LlamaConfig

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=4)
parser.add_argument("--length", type=int, default=1024)
parser.add_argument("--steps", type=int, default=20)
arguments = parser.parse_args()


class Text(Dataset):
    def __len__(self) -> int:
        return arguments.batch_size * arguments.steps

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        tokens = torch.randint(0, 32000, (arguments.length,))
        return {"input_ids": tokens, "labels": tokens}


# The sizes that the class has by default.
model = AutoModelForCausalLM.from_config(LlamaConfig(), dtype=torch.bfloat16).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step, batch in enumerate(DataLoader(Text(), batch_size=arguments.batch_size)):
    batch = {name: values.cuda() for name, values in batch.items()}
    loss = model(**batch).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step} loss {loss.item():.4f}", flush=True)
