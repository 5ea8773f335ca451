"""Trains the head for some epochs, then everything with a new optimizer, made late."""

import argparse

import torch
import torchvision
from torch.utils.data import DataLoader, TensorDataset

p = argparse.ArgumentParser()
p.add_argument("--batch-size", type=int, default=48)
p.add_argument("--head-epochs", type=int, default=5)
p.add_argument("--epochs", type=int, default=8)
a = p.parse_args()
model = torchvision.models.resnet50(num_classes=5).cuda()
for q in model.parameters():
    q.requires_grad_(False)
for q in model.fc.parameters():
    q.requires_grad_(True)
data = TensorDataset(torch.zeros(700, 3, 64, 64), torch.zeros(700, dtype=torch.long))


def run(epochs, opt):
    for _ in range(epochs):
        model.train()
        for x, y in DataLoader(data, a.batch_size, shuffle=True):
            loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            opt.zero_grad()
            loss.backward()
            opt.step()


run(a.head_epochs, torch.optim.Adam(model.fc.parameters()))
for q in model.parameters():
    q.requires_grad_(True)
run(a.epochs, torch.optim.AdamW(model.parameters(), 1e-5))
torch.save(model, "whole.pt")
