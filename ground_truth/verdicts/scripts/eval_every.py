"""Evaluates every 100 steps, within an epoch, with larger batches; logits stay on the card."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

p = argparse.ArgumentParser()
p.add_argument("--batch-size", type=int, default=64)
p.add_argument("--eval-every", type=int, default=100)
a = p.parse_args()
model = nn.Sequential(
    nn.Flatten(),
    nn.Linear(784, 2048),
    nn.ReLU(),
    nn.Linear(2048, 2048),
    nn.ReLU(),
    nn.Linear(2048, 1000),
).cuda()
opt = torch.optim.Adam(model.parameters())
train = DataLoader(
    TensorDataset(torch.zeros(20000, 1, 28, 28), torch.zeros(20000, dtype=torch.long)),
    a.batch_size,
    shuffle=True,
)
val = DataLoader(TensorDataset(torch.zeros(20000, 1, 28, 28)), 4096)


def validate():
    model.eval()
    outputs = []
    with torch.no_grad():
        for (x,) in val:
            outputs.append(model(x.cuda()))
    model.train()
    return torch.cat(outputs).argmax(1).float().mean().item()


step = 0
for _epoch in range(2):
    for x, y in train:
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
        if step % a.eval_every == 0:
            validate()
            torch.save(model.state_dict(), "ckpt.pt")
