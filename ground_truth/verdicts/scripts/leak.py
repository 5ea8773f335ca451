"""A training that keeps something of every step."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=256)
parser.add_argument(
    "--keep", default="outputs", choices=("outputs", "losses", "evaluation", "nothing")
)
parser.add_argument("--samples", type=int, default=6000)
parser.add_argument("--width", type=int, default=2048)
args = parser.parse_args()
data = TensorDataset(torch.randn(args.samples, args.width), torch.randint(0, 100, (args.samples,)))
model = nn.Sequential(
    nn.Linear(args.width, args.width),
    nn.GELU(),
    nn.Linear(args.width, args.width),
    nn.GELU(),
    nn.Linear(args.width, 100),
).cuda()
optimizer = torch.optim.Adam(model.parameters())
kept = []
for epoch in range(2):
    model.train()
    for x, y in DataLoader(data, args.batch_size, shuffle=True):
        x, y = x.cuda(), y.cuda()
        hidden = model[:4](x)
        loss = F.cross_entropy(model[4](hidden), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if args.keep == "outputs":
            kept.append(hidden.detach())
        elif args.keep == "losses":
            kept.append(F.cross_entropy(model(x), y))
    model.eval()
    outputs = []
    for x, _ in DataLoader(data, args.batch_size):
        if args.keep == "evaluation":
            outputs.append(model(x.cuda()))
        else:
            with torch.no_grad():
                outputs.append(model(x.cuda()).cpu())
    print(f"epoch {epoch} {loss.item():.3f} {len(outputs)} {len(kept)}")
    torch.save(model.state_dict(), "leak.pt")
