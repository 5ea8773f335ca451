"""Early stopping; then the best checkpoint goes into a second model, tested with large batches."""

import argparse

import torch
import torchvision
from torch.utils.data import DataLoader, TensorDataset

p = argparse.ArgumentParser()
p.add_argument("--batch-size", type=int, default=96)
p.add_argument("--epochs", type=int, default=100)
p.add_argument("--patience", type=int, default=5)
a = p.parse_args()


def make(n):
    return TensorDataset(torch.zeros(n, 3, 64, 64), torch.zeros(n, dtype=torch.long))


def build():
    return torchvision.models.mobilenet_v3_small(num_classes=20).cuda()


model = build()
opt = torch.optim.AdamW(model.parameters(), 1e-3)
sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt)
train, val, test = (
    DataLoader(make(n), b, shuffle=n == 900)
    for n, b in ((900, a.batch_size), (300, a.batch_size), (1200, 600))
)
best, bad = float("inf"), 0
for epoch in range(a.epochs):
    model.train()
    for x, y in train:
        loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
    model.eval()
    total = 0
    with torch.no_grad():
        for x, y in val:
            total += torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda()).item()
    sched.step(total)
    if total < best:
        best, bad = total, 0
        torch.save(model.state_dict(), "best.pt")
    else:
        bad += 1
        if bad >= a.patience:
            print("stop early at", epoch)
            break
final = build()
final.load_state_dict(torch.load("best.pt", weights_only=True))
final.eval()
feats = []
with torch.no_grad():
    for x, _ in test:
        feats.append(final.features(x.cuda()))
print(len(torch.cat(feats)))
