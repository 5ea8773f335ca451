import argparse

import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainingArguments,
)

p = argparse.ArgumentParser()
p.add_argument("--per_device_train_batch_size", type=int, default=32)
a = p.parse_args()


class D(torch.utils.data.Dataset):
    def __init__(s, n):
        s.n = n

    def __len__(s):
        return s.n

    def __getitem__(s, i):
        return {
            "input_ids": [1] * (16 + i * 7 % 112),
            "attention_mask": [1] * (16 + i * 7 % 112),
            "labels": i % 2,
        }


def collate(items):
    m = max(len(i["input_ids"]) for i in items)

    def pad(k):
        return torch.tensor([i[k] + [0] * (m - len(i[k])) for i in items])

    return {
        "input_ids": pad("input_ids"),
        "attention_mask": pad("attention_mask"),
        "labels": torch.tensor([i["labels"] for i in items]),
    }


model = BertForSequenceClassification(
    BertConfig(
        hidden_size=192,
        num_hidden_layers=3,
        num_attention_heads=3,
        intermediate_size=768,
        vocab_size=5000,
    )
)
args = TrainingArguments(
    "out",
    per_device_train_batch_size=a.per_device_train_batch_size,
    per_device_eval_batch_size=200,
    num_train_epochs=3,
    eval_strategy="steps",
    eval_steps=40,
    save_strategy="steps",
    save_steps=80,
    load_best_model_at_end=True,
    logging_steps=20,
    report_to=[],
    disable_tqdm=True,
    save_total_limit=1,
    seed=1,
)
Trainer(
    model=model,
    args=args,
    train_dataset=D(3010),
    eval_dataset=D(1000),
    data_collator=collate,
    compute_metrics=lambda e: {"n": float(len(e.predictions))},
).train()
