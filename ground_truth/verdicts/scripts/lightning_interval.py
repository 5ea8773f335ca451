import argparse

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

p = argparse.ArgumentParser()
p.add_argument("--batch-size", type=int, default=64)
a = p.parse_args()


class M(L.LightningModule):
    def __init__(s):
        super().__init__()
        s.net = nn.Sequential(
            nn.Conv2d(3, 64, 3, padding=1),
            nn.BatchNorm2d(64),
            nn.ReLU(),
            nn.Conv2d(64, 64, 3, 2, 1),
            nn.BatchNorm2d(64),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(64, 10),
        )

    def training_step(s, b, i):
        loss = nn.functional.cross_entropy(s.net(b[0]), b[1])
        s.log("l", loss)
        return loss

    def validation_step(s, b, i):
        s.log("v", nn.functional.cross_entropy(s.net(b[0]), b[1]))

    def configure_optimizers(s):
        o = torch.optim.AdamW(s.parameters())
        return [o], [torch.optim.lr_scheduler.CosineAnnealingLR(o, 3)]


def d(n):
    return TensorDataset(torch.zeros(n, 3, 48, 48), torch.zeros(n, dtype=torch.long))


t = L.Trainer(
    max_epochs=3,
    val_check_interval=0.25,
    accelerator="gpu",
    devices=1,
    logger=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    callbacks=[
        L.pytorch.callbacks.ModelCheckpoint(dirpath="ck", monitor="v"),
        L.pytorch.callbacks.EarlyStopping("v"),
    ],
    num_sanity_val_steps=0,
)
t.fit(M(), DataLoader(d(5000), a.batch_size, shuffle=True), DataLoader(d(2000), 400))
