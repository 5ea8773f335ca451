"""transformers' Trainer with evaluation and a checkpoint after each epoch."""

import argparse
import random

import torch
from transformers import (
    DistilBertConfig,
    DistilBertForSequenceClassification,
    Trainer,
    TrainingArguments,
)

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=16)
parser.add_argument("--samples", type=int, default=200)
parser.add_argument("--accumulate", type=int, default=1)
parser.add_argument("--bf16", action="store_true")
args = parser.parse_args()
random.seed(6)
torch.manual_seed(6)
texts = [
    {
        "input_ids": torch.randint(5, 30000, (random.choice([64, 128, 256, 384]),)),
        "label": index % 2,
    }
    for index in range(args.samples)
]


def collate(batch):
    longest = max(len(each["input_ids"]) for each in batch)
    ids = torch.zeros(len(batch), longest, dtype=torch.long)
    for row, each in enumerate(batch):
        ids[row, : len(each["input_ids"])] = each["input_ids"]
    return {
        "input_ids": ids,
        "attention_mask": (ids > 0).long(),
        "labels": torch.tensor([each["label"] for each in batch]),
    }


trainer = Trainer(
    DistilBertForSequenceClassification(DistilBertConfig()),
    TrainingArguments(
        "trainer-out",
        num_train_epochs=2,
        per_device_train_batch_size=args.batch_size,
        per_device_eval_batch_size=32,
        gradient_accumulation_steps=args.accumulate,
        bf16=args.bf16,
        eval_strategy="epoch",
        save_strategy="epoch",
        save_total_limit=1,
        report_to=[],
        disable_tqdm=True,
        dataloader_pin_memory=False,
    ),
    data_collator=collate,
    train_dataset=texts,
    eval_dataset=texts[:70],
)
trainer.train()
