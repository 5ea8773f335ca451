"""Trains a small classifier with three memory mistakes, for `ghostgpu lint` to find.

ghostgpu lint examples/train_leaky.py
ghostgpu lint --measure --gpu 3060 --steps 8 examples/train_leaky.py
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

WIDTH = 4096
BATCH = 512
CLASSES = 1000


def main() -> None:
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, CLASSES)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    samples = TensorDataset(torch.randn(8192, WIDTH), torch.randint(CLASSES, (8192,)))
    outputs = []
    total = torch.zeros((), device="cuda")
    for inputs, labels in DataLoader(samples, batch_size=BATCH):
        output = model(inputs.cuda())
        loss = F.cross_entropy(output, labels.cuda())
        total += loss
        outputs.append(output)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("mean loss", total / len(outputs))

    model.eval()
    correct = 0
    for inputs, labels in DataLoader(samples, batch_size=4 * BATCH):
        correct += int((model(inputs.cuda()).argmax(1) == labels.cuda()).sum())
    print("accuracy", correct / len(samples))


if __name__ == "__main__":
    main()
