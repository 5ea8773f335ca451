"""Learning-rate range test before the training, with a copy of the state; then OneCycle."""

import argparse
import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

p = argparse.ArgumentParser()
p.add_argument("--batch-size", type=int, default=256)
a = p.parse_args()


class Block(nn.Module):
    def __init__(s, c):
        super().__init__()
        s.c = nn.Conv1d(c, c, 5, padding=2)
        s.n = nn.GroupNorm(8, c)

    def forward(s, x):
        return x + nn.functional.silu(s.n(s.c(x)))


model = nn.Sequential(
    nn.Conv1d(1, 64, 7, padding=3),
    *[Block(64) for _ in range(6)],
    nn.AdaptiveAvgPool1d(1),
    nn.Flatten(),
    nn.Linear(64, 5),
).cuda()
data = TensorDataset(torch.zeros(12000, 1, 512), torch.zeros(12000, dtype=torch.long))
loader = DataLoader(data, a.batch_size, shuffle=True)


def step(x, y, opt):
    loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.item()


saved = copy.deepcopy(model.state_dict())
opt = torch.optim.SGD(model.parameters(), 1e-6)
losses = []
it = iter(loader)
for _i in range(80):
    try:
        x, y = next(it)
    except StopIteration:
        it = iter(loader)
        x, y = next(it)
    for g in opt.param_groups:
        g["lr"] *= 1.15
    losses.append(step(x, y, opt))
    if losses[-1] > 4 * min(losses):
        break
model.load_state_dict(saved)
opt = torch.optim.AdamW(model.parameters())
sched = torch.optim.lr_scheduler.OneCycleLR(opt, 1e-2, epochs=4, steps_per_epoch=len(loader))
for _epoch in range(4):
    for x, y in loader:
        step(x, y, opt)
        sched.step()
    with torch.no_grad():
        model.eval()
        p = [model(x.cuda()).softmax(1).cpu() for x, _ in DataLoader(data, 1024)]
        model.train()
