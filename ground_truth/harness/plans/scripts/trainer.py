"""Trains DistilBERT with the `Trainer` of transformers: `python trainer.py --batch-size 64`."""

from __future__ import annotations

import argparse
import tempfile
import time
from typing import Any

import torch
from torch.utils.data import Dataset
from transformers import (
    DistilBertConfig,
    DistilBertForSequenceClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, required=True)
parser.add_argument("--steps", type=int, default=20)
arguments = parser.parse_args()


class OneSample(Dataset):
    def __init__(self) -> None:
        self.sample = {"input_ids": torch.randint(5, 30000, (256,)), "labels": torch.tensor(1)}

    def __len__(self) -> int:
        return arguments.batch_size * arguments.steps

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return self.sample


class StepTimes(TrainerCallback):
    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self.begin = time.perf_counter()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        torch.cuda.synchronize()
        print(f"step {state.global_step} {time.perf_counter() - self.begin:.5f} s", flush=True)


torch.manual_seed(0)
torch.set_float32_matmul_precision("high")
with tempfile.TemporaryDirectory() as folder:
    Trainer(
        DistilBertForSequenceClassification(DistilBertConfig()),
        TrainingArguments(
            folder,
            per_device_train_batch_size=arguments.batch_size,
            max_steps=arguments.steps,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
        ),
        train_dataset=OneSample(),
        callbacks=[StepTimes()],
    ).train()
