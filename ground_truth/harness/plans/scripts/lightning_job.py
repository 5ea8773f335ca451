"""Trains a Swin transformer with Lightning: `python lightning_job.py --batch-size 64`."""

from __future__ import annotations

import argparse
import time
from typing import Any

import lightning
import torch
import torch.nn.functional as F
import torchvision
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, required=True)
parser.add_argument("--steps", type=int, default=20)
arguments = parser.parse_args()


class OneSample(Dataset):
    def __init__(self) -> None:
        self.sample = torch.randn(3, 224, 224), torch.tensor(7)

    def __len__(self) -> int:
        return arguments.batch_size * arguments.steps

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.sample


class Classifier(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.model = torchvision.models.swin_t()

    def training_step(self, batch: Any, _: int) -> torch.Tensor:
        images, classes = batch
        return F.cross_entropy(self.model(images), classes)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-4)


class StepTimes(lightning.Callback):
    def on_train_batch_start(self, *_: Any) -> None:
        self.begin = time.perf_counter()

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        torch.cuda.synchronize()
        print(f"step {trainer.global_step} {time.perf_counter() - self.begin:.5f} s", flush=True)


torch.manual_seed(0)
torch.set_float32_matmul_precision("high")
trainer = lightning.Trainer(
    max_steps=arguments.steps,
    accelerator="cuda",
    devices=1,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    callbacks=[StepTimes()],
)
trainer.fit(Classifier(), DataLoader(OneSample(), batch_size=arguments.batch_size))
