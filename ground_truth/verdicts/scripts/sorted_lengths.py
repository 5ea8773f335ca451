"""Text classifier; batches are made of samples sorted by length (longest last)."""

import argparse
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Texts(Dataset):
    def __init__(self, n, seed):
        rng = random.Random(seed)
        self.lengths = sorted(rng.randint(8, 200) for _ in range(n))

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, i):
        return torch.full((self.lengths[i],), i % 1000), i % 2


def collate(items):
    xs = nn.utils.rnn.pad_sequence([x for x, _ in items], batch_first=True)
    return xs, torch.tensor([y for _, y in items])


class Net(nn.Module):
    def __init__(self, d=128):
        super().__init__()
        self.emb = nn.Embedding(1000, d)
        layer = nn.TransformerEncoderLayer(d, 4, 4 * d, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(d, 2)

    def forward(self, x):
        return self.head(self.enc(self.emb(x)).mean(1))


p = argparse.ArgumentParser()
p.add_argument("--batch-size", type=int, default=128)
p.add_argument("--epochs", type=int, default=3)
a = p.parse_args()
model = Net().cuda()
opt = torch.optim.Adam(model.parameters())
train = DataLoader(Texts(4000, 0), a.batch_size, collate_fn=collate)
val = DataLoader(Texts(800, 1), a.batch_size * 2, collate_fn=collate)
for _epoch in range(a.epochs):
    model.train()
    for x, y in train:
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
    model.eval()
    hits = 0
    with torch.no_grad():
        for x, y in val:
            hits += (model(x.cuda()).argmax(1).cpu() == y).sum().item()
    torch.save(model.state_dict(), "last.pt")
