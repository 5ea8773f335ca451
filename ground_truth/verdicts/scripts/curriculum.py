"""Images become larger in later epochs."""

import argparse

import torch
import torchvision
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __init__(self, n):
        self.n, self.size = n, 64

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return torch.zeros(3, self.size, self.size), i % 10


p = argparse.ArgumentParser()
p.add_argument("--batch-size", type=int, default=64)
a = p.parse_args()
data = Images(1500)
model = torchvision.models.resnet18(num_classes=10).cuda()
opt = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
for epoch in range(16):
    data.size = 64 if epoch < 6 else 96 if epoch < 12 else 128
    for x, y in DataLoader(data, a.batch_size, shuffle=True):
        opt.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(model(x.cuda(non_blocking=True)), y.cuda()).backward()
        opt.step()
