"""Two towers and a loss over all pairs of a batch: memory grows with its square."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=6000)
parser.add_argument("--samples", type=int, default=20000)
parser.add_argument("--width", type=int, default=512)
args = parser.parse_args()


def tower():
    return nn.Sequential(
        nn.Linear(128, args.width),
        nn.LayerNorm(args.width),
        nn.GELU(),
        nn.Linear(args.width, args.width),
        nn.GELU(),
        nn.Linear(args.width, 256),
    )


left, right = tower().cuda(), tower().cuda()
scale = nn.Parameter(torch.tensor(2.6, device="cuda"))
optimizer = torch.optim.AdamW([*left.parameters(), *right.parameters(), scale], 1e-4)
data = TensorDataset(torch.randn(args.samples, 128), torch.randn(args.samples, 128))
for epoch in range(2):
    for a, b in DataLoader(data, args.batch_size, shuffle=True):
        a = F.normalize(left(a.cuda()), dim=-1)
        b = F.normalize(right(b.cuda()), dim=-1)
        scores = scale.exp() * a @ b.T
        target = torch.arange(len(a), device="cuda")
        loss = (F.cross_entropy(scores, target) + F.cross_entropy(scores.T, target)) / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        found = 0
        queries = F.normalize(left(data.tensors[0][:4000].cuda()), dim=-1)
        for start in range(0, args.samples, 5000):
            keys = F.normalize(right(data.tensors[1][start : start + 5000].cuda()), dim=-1)
            found += (queries @ keys.T).argmax(1).float().mean().item()
    print(f"epoch {epoch} {loss.item():.3f} {found:.1f}")
    torch.save([left.state_dict(), right.state_dict()], "contrastive.pt")
