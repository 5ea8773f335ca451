"""A stream of documents of varying length, packed by tokens; length unknown; workers."""

import argparse
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

p = argparse.ArgumentParser()
p.add_argument("--tokens", type=int, default=8192)
p.add_argument("--steps", type=int, default=300)
p.add_argument("--workers", type=int, default=0)
a = p.parse_args()


class Stream(IterableDataset):
    def __iter__(self):
        rng = random.Random(3)
        while True:
            length = rng.choice([32, 48, 64, 96, 128, 192, 256])
            yield torch.zeros(a.tokens // length, length, dtype=torch.long)


class Net(nn.Module):
    def __init__(s, v=16000, d=256):
        super().__init__()
        s.e = nn.Embedding(v, d)
        s.t = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(d, 8, 1024, batch_first=True, norm_first=True),
            3,
            enable_nested_tensor=False,
        )
        s.o = nn.Linear(d, v, bias=False)
        s.o.weight = s.e.weight

    def forward(s, x):
        return s.o(s.t(s.e(x)))


m = Net().cuda()
o = torch.optim.AdamW(m.parameters(), fused=True)
for step, x in enumerate(DataLoader(Stream(), batch_size=None, num_workers=a.workers)):
    if step == a.steps:
        break
    x = x.cuda()
    with torch.autocast("cuda", torch.bfloat16):
        out = m(x)
        loss = nn.functional.cross_entropy(out[:, :-1].flatten(0, 1).float(), x[:, 1:].flatten())
    o.zero_grad(set_to_none=True)
    loss.backward()
    o.step()
    if step % 50 == 49:
        torch.save({"m": m.state_dict(), "step": step}, "stream.pt")
