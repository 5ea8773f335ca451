"""Parts of training scripts, filled in and combined by `training_scripts.py`."""

from __future__ import annotations

HEADERS = (
    '"""Trains {subject} on {data}.\n\nRun with `python {name}.py --help` for the options.\n"""\n',
    "#!/usr/bin/env python3\n# {subject}, {data}; see the paper for the settings.\n",
    "# -*- coding: utf-8 -*-\n",
)

IMPORTS = """
import argparse
import json
import logging
import math
import os
import random
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import CosineAnnealingLR, OneCycleLR
from torch.utils.data import DataLoader, Dataset

logger = logging.getLogger(__name__)
"""

ARGUMENTS = """

def parse_args():
    parser = argparse.ArgumentParser(description="{subject}")
    parser.add_argument("--data", type=Path, default=Path("{data}"))
    parser.add_argument("--epochs", type=int, default={epochs})
    parser.add_argument("--batch-size", type=int, default={batch})
    parser.add_argument("--lr", type=float, default={lr})
    parser.add_argument("--weight-decay", type=float, default=0.01)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--accumulate", type=int, default={accumulate})
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--amp", action="store_true", help="train in mixed precision")
    parser.add_argument("--resume", type=str, default=None)
    parser.add_argument("--output", type=Path, default=Path("runs/{name}"))
    parser.add_argument("--seed", type=int, default={seed})
    return parser.parse_args()


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)
"""

DATASETS = (
    """

class {Data}Dataset(Dataset):
    def __init__(self, root, split="train", transform=None):
        self.files = sorted((Path(root) / split).glob("*.npy"))
        self.labels = json.loads((Path(root) / f"{{split}}.json").read_text())
        self.transform = transform

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        image = np.load(self.files[index]).astype(np.float32) / 255.0
        if self.transform is not None:
            image = self.transform(image)
        return torch.from_numpy(image), self.labels[self.files[index].stem]
""",
    """

class {Data}Dataset(Dataset):
    def __init__(self, root, split="train", block={block}):
        tokens = np.memmap(Path(root) / f"{{split}}.bin", dtype=np.uint16, mode="r")
        self.tokens = tokens
        self.block = block

    def __len__(self):
        return (len(self.tokens) - 1) // self.block

    def __getitem__(self, index):
        start = index * self.block
        piece = torch.from_numpy(self.tokens[start : start + self.block + 1].astype(np.int64))
        return piece[:-1], piece[1:]
""",
    """

class {Data}Dataset(Dataset):
    \"\"\"Rows of a table; the last column is what is to be learnt.\"\"\"

    def __init__(self, root, split="train"):
        table = np.loadtxt(Path(root) / f"{{split}}.csv", delimiter=",", skiprows=1)
        self.features = torch.tensor(table[:, :-1], dtype=torch.float32){to_card}
        self.targets = torch.tensor(table[:, -1], dtype=torch.long){to_card}

    def __len__(self):
        return self.features.shape[0]

    def __getitem__(self, index):
        return self.features[index], self.targets[index]
""",
)

MODELS = (
    """

class Block(nn.Module):
    def __init__(self, inner, outer, stride=1):
        super().__init__()
        self.first = nn.Conv2d(inner, outer, 3, stride=stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(outer)
        self.second = nn.Conv2d(outer, outer, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outer)
        self.act = nn.{activation}()
        self.shortcut = nn.Identity()
        if stride != 1 or inner != outer:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inner, outer, 1, stride=stride, bias=False), nn.BatchNorm2d(outer)
            )

    def forward(self, x):
        y = self.act(self.norm1(self.first(x)))
        y = self.norm2(self.second(y))
        return self.act(y + self.shortcut(x))


class {Model}(nn.Module):
    def __init__(self, classes={classes}, width={width}):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 7, stride=2, padding=3)
        stages = [Block(width * 2**i, width * 2 ** (i + 1), stride=2) for i in range({layers})]
        self.stages = nn.ModuleList(stages)
        self.head = nn.Linear(width * 2 ** {layers}, classes)

    def forward(self, x):
        x = self.stem(x)
        for stage in self.stages:
            x = stage(x)
        return self.head(x.mean(dim=(2, 3)))
""",
    """

class Attention(nn.Module):
    def __init__(self, width, heads, dropout=0.1):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        mask = torch.triu(torch.ones(t, t, dtype=torch.bool, device=x.device), diagonal=1)
        weights = self.dropout(scores.masked_fill(mask, float("-inf")).softmax(dim=-1))
        return self.out((weights @ v).transpose(1, 2).reshape(b, t, c))


class {Model}(nn.Module):
    def __init__(self, vocab={vocab}, width={width}, layers={layers}, block={block}):
        super().__init__()
        self.tokens = nn.Embedding(vocab, width)
        self.places = nn.Parameter(torch.zeros(1, block, width))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * layers))
        self.attention = nn.ModuleList(Attention(width, {heads}) for _ in range(layers))
        self.mlps = nn.ModuleList(
            nn.Sequential(
                nn.Linear(width, 4 * width), nn.{activation}(), nn.Linear(4 * width, width)
            )
            for _ in range(layers)
        )
        self.head = nn.Linear(width, vocab, bias=False)

    def forward(self, x):
        x = self.tokens(x) + self.places[:, : x.size(1)]
        for i, (attend, mlp) in enumerate(zip(self.attention, self.mlps)):
            x = x + attend(self.norms[2 * i](x))
            x = x + mlp(self.norms[2 * i + 1](x))
        return self.head(x).flatten(0, 1)
""",
    """

class {Model}(nn.Module):
    def __init__(self, features={features}, width={width}, classes={classes}):
        super().__init__()
        layers = []
        for _ in range({layers}):
            layers += [nn.Linear(features, width), nn.BatchNorm1d(width), nn.{activation}()]
            layers.append(nn.Dropout(0.2))
            features = width
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.body(x))
""",
    """

class {Model}(nn.Module):
    def __init__(self, features={features}, width={width}, classes={classes}):
        super().__init__()
        self.embed = nn.Linear(features, width)
        self.rnn = nn.LSTM(width, width, num_layers={layers}, batch_first=True, dropout=0.1)
        self.head = nn.Linear(width, classes)

    def forward(self, x, state=None):
        if x.dim() == 2:
            x = x.unsqueeze(1)
        out, state = self.rnn(F.relu(self.embed(x)), state)
        return self.head(out[:, -1])
""",
)

LOOPS = (
    """

def train_one_epoch(model, loader, criterion, optimizer, scheduler, device, args, epoch):
    model.train()
    {total} = 0.0
    started = time.time()
    for step, (inputs, targets) in enumerate(loader):
        inputs = inputs.to(device, non_blocking=True)
        targets = targets.to(device, non_blocking=True).flatten()
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        optimizer.step()
        scheduler.step()
        {total} += {loss_value}
        if step % {every} == 0:
            speed = (step + 1) * args.batch_size / (time.time() - started)
            logger.info("epoch %d step %d loss %.4f (%.1f/s)", epoch, step, loss.item(), speed)
    return {total} / max(len(loader), 1)
""",
    """

def train_one_epoch(model, loader, criterion, optimizer, scheduler, device, args, epoch):
    model.train()
    {history} = []
    scaler = torch.amp.GradScaler("cuda", enabled=args.amp)
    for step, (inputs, targets) in enumerate(loader):
        inputs, targets = inputs.to(device), targets.to(device).flatten()
        with torch.autocast("cuda", dtype=torch.float16, enabled=args.amp):
            loss = criterion(model(inputs), targets) / args.accumulate
        scaler.scale(loss).backward()
        if (step + 1) % args.accumulate == 0 or step + 1 == len(loader):
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad(set_to_none={set_to_none})
            scheduler.step()
        {history}.append({loss_value})
    logger.info("epoch %d: %.4f", epoch, float(sum({history})) / len({history}))
    return float(sum({history})) / len({history})
""",
)

EVALUATIONS = (
    """

{no_grad}def evaluate(model, loader, criterion, device):
    model.eval()
    correct, seen, {total} = 0, 0, 0.0
    for inputs, targets in loader:
        inputs, targets = inputs.to(device), targets.to(device).flatten()
        outputs = model(inputs)
        {total} += criterion(outputs, targets).item() * targets.numel()
        correct += (outputs.argmax(dim=-1) == targets).sum().item()
        seen += targets.numel()
    return {{"loss": {total} / seen, "accuracy": correct / seen}}
""",
    """

def evaluate(model, loader, criterion, device):
    model.eval()
    outputs, labels = [], []
    with torch.{guard}():
        for inputs, targets in loader:
            outputs.append(model(inputs.to(device)){keep})
            labels.append(targets.flatten())
    outputs, labels = torch.cat(outputs), torch.cat(labels)
    loss = criterion(outputs, labels.to(outputs.device))
    by_class = defaultdict(lambda: [0, 0])
    for guess, label in zip(outputs.argmax(dim=-1).tolist(), labels.tolist()):
        by_class[label][0] += guess == label
        by_class[label][1] += 1
    accuracy = sum(right for right, _ in by_class.values()) / max(len(labels), 1)
    return {{"loss": loss.item(), "accuracy": accuracy}}
""",
)

MAIN = """

def save(model, optimizer, epoch, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    state = {{"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}}
    torch.save(state, path)


def main():
    args = parse_args()
    set_seed(args.seed)
    logging.basicConfig(level=logging.INFO)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_set = {Data}Dataset(args.data, "train")
    valid_set = {Data}Dataset(args.data, "valid")
    train_loader = DataLoader(
        train_set,
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=args.workers,
        pin_memory=True,
    )
    valid_loader = DataLoader(valid_set, batch_size=args.batch_size, num_workers=args.workers)
    model = {Model}().to(device)
    count = sum(p.numel() for p in model.parameters() if p.requires_grad)
    logger.info("%.1f million parameters", count / 1e6)
    criterion = nn.CrossEntropyLoss(label_smoothing={smoothing})
    optimizer = torch.optim.{optimizer}(
        model.parameters(), lr=args.lr, weight_decay=args.weight_decay
    )
    scheduler = CosineAnnealingLR(optimizer, T_max=args.epochs * len(train_loader))
    start, best = 0, float("inf")
    if args.resume:
        state = torch.load(args.resume{map_location})
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        start = state["epoch"] + 1
    for epoch in range(start, args.epochs):
        loss = train_one_epoch(
            model, train_loader, criterion, optimizer, scheduler, device, args, epoch
        )
        result = evaluate(model, valid_loader, criterion, device)
        logger.info("epoch %d: train %.4f, valid %s", epoch, loss, json.dumps(result))
        {between}
        if result["loss"] < best:
            best = result["loss"]
            save(model, optimizer, epoch, args.output / "best.pt")
    logger.info("best loss: %.4f", best)


if __name__ == "__main__":
    main()
"""
