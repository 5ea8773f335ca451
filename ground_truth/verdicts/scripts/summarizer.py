"""Summaries: an encoder and decoder of transformers, texts generated in evaluation."""

import argparse
import random

import torch
from torch.utils.data import DataLoader
from transformers import T5Config, T5ForConditionalGeneration

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=12)
parser.add_argument("--samples", type=int, default=70)
parser.add_argument("--beams", type=int, default=3)
args = parser.parse_args()
random.seed(11)
order = torch.Generator().manual_seed(3)
articles = [
    (torch.full((random.choice([96, 192, 256, 320]),), 7), torch.full((random.randint(16, 48),), 9))
    for _ in range(args.samples)
]


def collate(batch):
    def padded(rows, filler):
        longest = max(len(row) for row in rows)
        return torch.stack(
            [torch.nn.functional.pad(row, (0, longest - len(row)), value=filler) for row in rows]
        )

    ids = padded([article for article, _ in batch], 0)
    return {
        "input_ids": ids,
        "attention_mask": (ids != 0).long(),
        "labels": padded([summary for _, summary in batch], -100),
    }


model = T5ForConditionalGeneration(
    T5Config(d_model=384, d_kv=64, num_heads=6, d_ff=1024, num_layers=4, decoder_start_token_id=0)
).cuda()
optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
for epoch in range(2):
    model.train()
    loader = DataLoader(articles, args.batch_size, True, collate_fn=collate, generator=order)
    for batch in loader:
        loss = model(**{name: value.cuda() for name, value in batch.items()}).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.eval()
    for batch in DataLoader(articles[:20], 8, collate_fn=collate):
        texts = model.generate(
            batch["input_ids"].cuda(),
            attention_mask=batch["attention_mask"].cuda(),
            num_beams=args.beams,
            min_new_tokens=20,
            max_new_tokens=20,
        )
    print(f"epoch {epoch} {tuple(texts.shape)}")
    model.save_pretrained("summarizer")
