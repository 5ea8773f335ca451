"""Fine-tuning of a BERT classifier; each batch is padded to its longest text."""

import argparse
import random

import torch
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForSequenceClassification, get_linear_schedule_with_warmup

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=16)
parser.add_argument("--eval-batch-size", type=int, default=32)
parser.add_argument("--layers", type=int, default=6)
parser.add_argument("--hidden", type=int, default=768)
parser.add_argument("--samples", type=int, default=250)
parser.add_argument("--attention", default="sdpa", choices=("sdpa", "eager"))
parser.add_argument("--amp", action="store_true")
parser.add_argument("--no-eval", action="store_true")
args = parser.parse_args()
order = torch.Generator().manual_seed(0)

random.seed(1)
torch.manual_seed(1)
lengths = [48, 96, 128, 160, 224, 256, 320, 448, 512]
texts = [
    {
        "input_ids": torch.randint(5, 30000, (random.choice(lengths),)),
        "labels": torch.tensor(index % 2),
    }
    for index in range(args.samples)
]


def collate(batch):
    longest = max(len(each["input_ids"]) for each in batch)
    ids = torch.zeros(len(batch), longest, dtype=torch.long)
    mask = torch.zeros(len(batch), longest, dtype=torch.long)
    for row, each in enumerate(batch):
        ids[row, : len(each["input_ids"])] = each["input_ids"]
        mask[row, : len(each["input_ids"])] = 1
    return {
        "input_ids": ids,
        "attention_mask": mask,
        "labels": torch.stack([each["labels"] for each in batch]),
    }


config = BertConfig(
    hidden_size=args.hidden,
    num_hidden_layers=args.layers,
    num_attention_heads=args.hidden // 64,
    intermediate_size=4 * args.hidden,
    attn_implementation=args.attention,
)
model = BertForSequenceClassification(config).cuda()
train = DataLoader(texts, args.batch_size, shuffle=True, collate_fn=collate, generator=order)
test = DataLoader(texts[:100], args.eval_batch_size, collate_fn=collate)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
schedule = get_linear_schedule_with_warmup(optimizer, 5, 2 * len(train))
for epoch in range(2):
    model.train()
    for batch in train:
        batch = {name: value.cuda() for name, value in batch.items()}
        with torch.autocast("cuda", torch.bfloat16, enabled=args.amp):
            loss = model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    if not args.no_eval:
        model.eval()
        right = 0
        with torch.no_grad():
            for batch in test:
                batch = {name: value.cuda() for name, value in batch.items()}
                right += (model(**batch).logits.argmax(-1) == batch["labels"]).sum().item()
        print(f"epoch {epoch} accuracy {right / 100:.2f}")
    torch.save(model.state_dict(), "bert.pt")
