"""Trains a classifier."""
from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BATCH = 64


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3)
        self.head = nn.Linear(8, 10)

    def forward(self, x):
        return self.head(self.stem(x).mean((2, 3)))


data = TensorDataset(torch.randn(256, 3, 8, 8), torch.zeros(256).long())
loader = DataLoader(data, batch_size=BATCH, shuffle=True)
checks = DataLoader(data, batch_size=128)
model = Net().to("cuda")
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99), foreach=True)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)

for epoch in range(3):
    model.train()
    for x, y in loader:
        x, y = x.to("cuda"), y.to("cuda")  # both
        optimizer.zero_grad()
        out = model(x)
        loss = criterion(out, y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        print(loss.item())

    model.eval()
    correct = 0
    for x, y in checks:
        out = model(x.to("cuda"))
        correct += (out.argmax(1) == y.to("cuda")).sum().item()
