import argparse

import torch
from torch import nn

p = argparse.ArgumentParser()
p.add_argument("--points", type=int, default=60_000)
a = p.parse_args()
m = nn.Sequential(
    nn.Linear(2, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 1)
).cuda()
xy = torch.rand(a.points, 2, device="cuda", requires_grad=True)
opt = torch.optim.LBFGS(m.parameters(), max_iter=10, history_size=20, line_search_fn="strong_wolfe")


def closure():
    opt.zero_grad()
    u = m(xy)
    g = torch.autograd.grad(u.sum(), xy, create_graph=True)[0]
    gg = torch.autograd.grad(g[:, 0].sum(), xy, create_graph=True)[0]
    loss = (gg[:, 0] + u.squeeze(1)).pow(2).mean()
    loss.backward()
    return loss


for _it in range(40):
    opt.step(closure)
