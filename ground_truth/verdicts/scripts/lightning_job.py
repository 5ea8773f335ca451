"""A Lightning training with validation and checkpoints."""

import argparse

import lightning
import torch
import torch.nn.functional as F
import torchvision
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=96)
parser.add_argument("--samples", type=int, default=700)
parser.add_argument("--precision", default="32-true")
args = parser.parse_args()


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torchvision.models.resnet18(num_classes=10)

    def training_step(self, batch, _):
        x, y = batch
        loss = F.cross_entropy(self.net(x), y)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        self.log("val", (self.net(x).argmax(1) == y).float().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 1e-3)


data = TensorDataset(torch.randn(args.samples, 3, 96, 96), torch.randint(0, 10, (args.samples,)))
trainer = lightning.Trainer(
    max_epochs=2,
    accelerator="gpu",
    devices=1,
    precision=args.precision,
    logger=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    num_sanity_val_steps=2,
)
trainer.fit(
    Classifier(),
    DataLoader(data, args.batch_size, shuffle=True),
    DataLoader(data, 2 * args.batch_size),
)
