"""A GPT written out: random windows of tokens, the loss estimated every few iterations."""

import argparse
import math

import torch
import torch.nn.functional as F
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=12)
parser.add_argument("--block", type=int, default=256)
parser.add_argument("--layers", type=int, default=6)
parser.add_argument("--heads", type=int, default=6)
parser.add_argument("--width", type=int, default=384)
parser.add_argument("--micro-steps", type=int, default=3)
parser.add_argument("--iterations", type=int, default=40)
parser.add_argument("--interval", type=int, default=15)
parser.add_argument("--bf16", action="store_true")
args = parser.parse_args()
words = 50304


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(args.width), nn.LayerNorm(args.width)
        self.qkv, self.out = (
            nn.Linear(args.width, 3 * args.width),
            nn.Linear(args.width, args.width),
        )
        self.mlp = nn.Sequential(
            nn.Linear(args.width, 4 * args.width), nn.GELU(), nn.Linear(4 * args.width, args.width)
        )

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (
            each.view(batch, length, args.heads, width // args.heads).transpose(1, 2)
            for each in self.qkv(self.ln_1(x)).split(width, 2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(words, args.width)
        self.places = nn.Embedding(args.block, args.width)
        self.blocks = nn.ModuleList(Block() for _ in range(args.layers))
        self.norm = nn.LayerNorm(args.width)
        self.head = nn.Linear(args.width, words, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, x, y):
        x = self.tokens(x) + self.places(torch.arange(x.size(1), device=x.device))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.view(-1, words), y.view(-1))


data = torch.randint(0, words, (50_000,))


def get_batch():
    starts = torch.randint(len(data) - args.block, (args.batch_size,)).tolist()
    x = torch.stack([data[start : start + args.block] for start in starts])
    y = torch.stack([data[start + 1 : start + 1 + args.block] for start in starts])
    return x.cuda(), y.cuda()


context = torch.autocast("cuda", torch.bfloat16, enabled=args.bf16)
model = GPT().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95))


@torch.no_grad()
def estimate_loss():
    model.eval()
    losses = torch.zeros(5)
    for index in range(5):
        x, y = get_batch()
        with context:
            losses[index] = model(x, y).item()
    model.train()
    return losses.mean()


x, y = get_batch()
for iteration in range(args.iterations):
    if iteration % args.interval == 0:
        print(f"iteration {iteration} {estimate_loss():.3f}")
        if iteration > 0:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "gpt.pt")
    for group in optimizer.param_groups:
        group["lr"] = 6e-4 * (0.5 + 0.5 * math.cos(math.pi * iteration / args.iterations))
    for _ in range(args.micro_steps):
        with context:
            loss = model(x, y) / args.micro_steps
        x, y = get_batch()
        loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
