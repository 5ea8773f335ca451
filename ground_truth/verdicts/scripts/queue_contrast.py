"""Momentum contrast: a queue of keys on the card, a slowly following encoder, streamed data."""

import argparse
import copy

import torch
import torch.nn.functional as F
import torchvision
from torch.utils.data import DataLoader, IterableDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=96)
parser.add_argument("--samples", type=int, default=1000)
parser.add_argument("--queue", type=int, default=8192)
args = parser.parse_args()


class Pairs(IterableDataset):
    """Two views of each image, one after the other."""

    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        mine, all_workers = (worker.id, worker.num_workers) if worker else (0, 1)
        for _ in range(mine, args.samples, all_workers):
            yield torch.randn(3, 64, 64), torch.randn(3, 64, 64)


query = torchvision.models.resnet18(num_classes=128).cuda()
key = copy.deepcopy(query).requires_grad_(False)
queue = F.normalize(torch.randn(128, args.queue, device="cuda"), dim=0)
optimizer = torch.optim.SGD(query.parameters(), 0.03, momentum=0.9, weight_decay=1e-4)
at = 0
for epoch in range(2):
    for first, second in DataLoader(Pairs(), args.batch_size):
        first, second = first.cuda(), second.cuda()
        q = F.normalize(query(first), dim=1)
        with torch.no_grad():
            for ours, theirs in zip(key.parameters(), query.parameters()):
                ours.mul_(0.999).add_(theirs, alpha=0.001)
            k = F.normalize(key(second), dim=1)
        logits = torch.cat([(q * k).sum(1, keepdim=True), q @ queue.clone()], 1) / 0.07
        loss = F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long, device="cuda"))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        end = min(at + len(k), args.queue)
        queue[:, at:end] = k[: end - at].T
        at = end % args.queue
    print(f"epoch {epoch} {loss.item():.3f}")
    torch.save({"query": query.state_dict(), "queue": queue}, "contrast.pt")
