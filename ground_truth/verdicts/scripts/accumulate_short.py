"""Accumulation over four batches; an epoch's last window has three, its last batch is short."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

p = argparse.ArgumentParser()
p.add_argument("--batch_size", "-b", type=int, default=96)
p.add_argument("--accum", type=int, default=4)
a = p.parse_args()


class LM(nn.Module):
    def __init__(s, v=8000, d=256):
        super().__init__()
        s.e = nn.Embedding(v, d)
        s.l = nn.LSTM(d, d, 2, batch_first=True)
        s.o = nn.Linear(d, v)

    def forward(s, x):
        return s.o(s.l(s.e(x))[0])


m = LM().cuda()
o = torch.optim.AdamW(m.parameters())
data = TensorDataset(torch.zeros(96 * 22 + 17, 33, dtype=torch.long))
loader = DataLoader(data, a.batch_size, shuffle=True)
for _epoch in range(3):
    for i, (x,) in enumerate(loader):
        x = x.cuda()
        out = m(x[:, :-1])
        loss = nn.functional.cross_entropy(out.flatten(0, 1), x[:, 1:].flatten()) / a.accum
        loss.backward()
        if (i + 1) % a.accum == 0 or i + 1 == len(loader):
            torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0)
            o.step()
            o.zero_grad()
