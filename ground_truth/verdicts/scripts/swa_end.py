"""Stochastic weight averaging from epoch 6; batch-norm statistics anew at the end; then a test."""

import argparse

import torch
import torchvision
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset

p = argparse.ArgumentParser()
p.add_argument("--batch-size", type=int, default=100)
a = p.parse_args()


def d(n):
    return TensorDataset(torch.zeros(n, 3, 32, 32), torch.zeros(n, dtype=torch.long))


loader, test = DataLoader(d(2050), a.batch_size, shuffle=True), DataLoader(d(1000), 1000)
model = torchvision.models.vgg11_bn(num_classes=10).cuda()
opt = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
avg = AveragedModel(model)
swa = SWALR(opt, swa_lr=0.01)
for epoch in range(9):
    model.train()
    for x, y in loader:
        opt.zero_grad()
        torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda()).backward()
        opt.step()
    if epoch >= 6:
        avg.update_parameters(model)
        swa.step()
update_bn(loader, avg, device="cuda")
avg.eval()
with torch.no_grad():
    print(sum((avg(x.cuda()).argmax(1).cpu() == y).sum().item() for x, y in test))
