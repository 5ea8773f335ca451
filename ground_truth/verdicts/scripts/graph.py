"""Message passing over graphs of different sizes, many graphs in a batch."""

import argparse
import random

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=128)
parser.add_argument("--width", type=int, default=256)
parser.add_argument("--samples", type=int, default=1000)
args = parser.parse_args()
order = torch.Generator().manual_seed(0)
random.seed(5)
graphs = []
for _ in range(args.samples):
    nodes = random.randint(20, 200)
    graphs.append(
        (torch.randn(nodes, 16), torch.randint(0, nodes, (2, 6 * nodes)), random.randint(0, 1))
    )


def collate(batch):
    offset, features, edges, owner = 0, [], [], []
    for index, (nodes, links, _) in enumerate(batch):
        features.append(nodes)
        edges.append(links + offset)
        owner.append(torch.full((len(nodes),), index))
        offset += len(nodes)
    return (
        torch.cat(features),
        torch.cat(edges, 1),
        torch.cat(owner),
        torch.tensor([each[2] for each in batch]),
    )


class Network(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.enter = nn.Linear(16, width)
        self.message = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(4))
        self.head = nn.Linear(width, 2)

    def forward(self, x, edges, owner, count):
        x = self.enter(x)
        for message in self.message:
            sent = F.relu(message(torch.cat([x[edges[0]], x[edges[1]]], 1)))
            x = x + torch.zeros_like(x).index_add(0, edges[1], sent)
        pooled = torch.zeros(count, x.shape[1], device=x.device).index_add(0, owner, x)
        return self.head(pooled)


model = Network(args.width).cuda()
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
for epoch in range(2):
    model.train()
    for x, edges, owner, labels in DataLoader(
        graphs, args.batch_size, shuffle=True, collate_fn=collate, generator=order
    ):
        logits = model(x.cuda(), edges.cuda(), owner.cuda(), len(labels))
        loss = F.cross_entropy(logits, labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for x, edges, owner, labels in DataLoader(graphs[:200], 200, collate_fn=collate):
            score = (
                (model(x.cuda(), edges.cuda(), owner.cuda(), len(labels)).argmax(1).cpu() == labels)
                .float()
                .mean()
            )
    print(f"epoch {epoch} {loss.item():.3f} {score:.3f}")
    torch.save(model.state_dict(), "graph.pt")
