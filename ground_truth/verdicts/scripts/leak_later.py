"""Keeps every output after a warm-up of 40 steps (per-sample losses for hard-example mining)."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

p = argparse.ArgumentParser()
p.add_argument("--batch-size", type=int, default=256)
p.add_argument("--samples", type=int, default=100_000)
a = p.parse_args()
m = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 1000)).cuda()
o = torch.optim.SGD(m.parameters(), 0.1)
kept = []
step = 0
for _epoch in range(3):
    for (x,) in DataLoader(TensorDataset(torch.zeros(a.samples, 512)), a.batch_size):
        out = m(x.cuda())
        loss = out.pow(2).mean()
        o.zero_grad()
        loss.backward()
        o.step()
        step += 1
        if step > 40:
            kept.append(out.detach())
