"""Semi-supervised: labelled and unlabelled data zipped, the labelled ones repeated."""

import argparse
import itertools

import torch
import torchvision
from torch.utils.data import DataLoader, TensorDataset

p = argparse.ArgumentParser()
p.add_argument("--batch-size", type=int, default=32)
p.add_argument("--mu", type=int, default=7)
a = p.parse_args()
model = torchvision.models.resnet18(num_classes=10).cuda()
opt = torch.optim.SGD(model.parameters(), 0.03, momentum=0.9)
lab = DataLoader(
    TensorDataset(torch.zeros(250, 3, 32, 32), torch.zeros(250, dtype=torch.long)),
    a.batch_size,
    shuffle=True,
    drop_last=True,
)
unl = DataLoader(TensorDataset(torch.zeros(5000, 3, 32, 32)), a.batch_size * a.mu, shuffle=True)
for _epoch in range(5):
    model.train()
    for (x, y), (u,) in zip(itertools.cycle(lab), unl):
        x, y, u = x.cuda(), y.cuda(), u.cuda()
        with torch.no_grad():
            pseudo = model(u).softmax(1)
        logits = model(torch.cat([x, u + 0.1 * torch.randn_like(u)]))
        lx, lu = logits[: len(x)], logits[len(x) :]
        conf, target = pseudo.max(1)
        loss = (
            torch.nn.functional.cross_entropy(lx, y)
            + (
                (conf > 0.95) * torch.nn.functional.cross_entropy(lu, target, reduction="none")
            ).mean()
        )
        opt.zero_grad()
        loss.backward()
        opt.step()
