"""A moving average of the model begins at step 60, and is what is evaluated."""

import argparse
import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

p = argparse.ArgumentParser()
p.add_argument("--batch-size", type=int, default=2048)
p.add_argument("--ema-start", type=int, default=60)
a = p.parse_args()


def net():
    return nn.Sequential(
        nn.Linear(256, 4096), nn.GELU(), nn.Linear(4096, 4096), nn.GELU(), nn.Linear(4096, 256)
    )


model, ema = net().cuda(), None
opt = torch.optim.AdamW(model.parameters())
train = DataLoader(TensorDataset(torch.zeros(50_000, 256)), a.batch_size, shuffle=True)
val = DataLoader(TensorDataset(torch.zeros(6_000, 256)), a.batch_size)
step = 0
for _epoch in range(10):
    for (x,) in train:
        x = x.cuda()
        loss = (model(x) - x).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
        if step == a.ema_start:
            ema = copy.deepcopy(model).requires_grad_(False)
        elif ema is not None:
            with torch.no_grad():
                for e, m in zip(ema.parameters(), model.parameters()):
                    e.lerp_(m, 0.01)
    if ema is not None:
        ema.eval()
        total = 0.0
        with torch.inference_mode():
            for (x,) in val:
                x = x.cuda()
                total += (ema(x) - x).pow(2).sum().item()
