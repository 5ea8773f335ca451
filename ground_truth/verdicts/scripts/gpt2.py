"""A GPT-2 with gradient accumulation, a held-out perplexity and checkpoints."""

import argparse

import torch
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=4)
parser.add_argument("--eval-batch-size", type=int, default=8)
parser.add_argument("--accumulate", type=int, default=4)
parser.add_argument("--layers", type=int, default=6)
parser.add_argument("--length", type=int, default=512)
parser.add_argument("--samples", type=int, default=90)
parser.add_argument("--amp", action="store_true")
parser.add_argument("--checkpointing", action="store_true")
parser.add_argument("--fused", action="store_true")
args = parser.parse_args()

texts = torch.randint(0, 50257, (args.samples, args.length))
held_out = torch.randint(0, 50257, (20, args.length))
model = GPT2LMHeadModel(GPT2Config(n_layer=args.layers)).cuda()
if args.checkpointing:
    model.gradient_checkpointing_enable()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=args.fused)
loader = DataLoader(texts, args.batch_size, shuffle=True)
for epoch in range(2):
    model.train()
    for index, tokens in enumerate(loader):
        tokens = tokens.cuda()
        with torch.autocast("cuda", torch.bfloat16, enabled=args.amp):
            loss = model(input_ids=tokens, labels=tokens).loss / args.accumulate
        loss.backward()
        if (index + 1) % args.accumulate == 0 or index + 1 == len(loader):
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    model.eval()
    losses = []
    with torch.no_grad():
        for tokens in DataLoader(held_out, args.eval_batch_size):
            tokens = tokens.cuda()
            losses.append(model(input_ids=tokens, labels=tokens).loss.item())
    print(f"epoch {epoch} perplexity {torch.tensor(losses).mean().exp():.1f}")
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "gpt2.pt")
