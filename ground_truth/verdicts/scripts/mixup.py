import argparse

import torch
import torchvision
from torch.utils.data import DataLoader, TensorDataset

p = argparse.ArgumentParser()
p.add_argument("--bs", type=int, default=128)
a = p.parse_args()
dev = "cuda" if torch.cuda.is_available() else "cpu"
model = torchvision.models.resnet34(num_classes=100).to(dev)
opt = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=5e-4, nesterov=True)
scaler = torch.amp.GradScaler("cuda")
data = TensorDataset(torch.zeros(3000, 3, 32, 32), torch.zeros(3000, dtype=torch.long))
test = TensorDataset(torch.zeros(1000, 3, 32, 32), torch.zeros(1000, dtype=torch.long))
best = 0
beta = torch.distributions.Beta(1.0, 1.0)
for _epoch in range(4):
    model.train()
    for x, y in DataLoader(data, a.bs, shuffle=True, drop_last=True):
        x, y = x.to(dev), y.to(dev)
        lam = float(beta.sample())
        perm = torch.randperm(x.size(0), device=dev)
        mixed = lam * x + (1 - lam) * x[perm]
        with torch.autocast("cuda", torch.float16):
            out = model(mixed)
            loss = lam * torch.nn.functional.cross_entropy(out, y) + (
                1 - lam
            ) * torch.nn.functional.cross_entropy(out, y[perm])
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        scaler.step(opt)
        scaler.update()
        opt.zero_grad()
    model.eval()
    right = 0
    with torch.no_grad():
        for x, y in DataLoader(test, 500):
            right += (model(x.to(dev)).argmax(1) == y.to(dev)).sum().item()
    if right >= best:
        best = right
        torch.save({"model": model.state_dict(), "opt": opt.state_dict()}, "best.pth")
