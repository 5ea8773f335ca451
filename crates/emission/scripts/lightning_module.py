import lightning as L
import torch
from torch import nn


class Task(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 8)

    def training_step(self, batch, index):
        return self.net(batch).square().mean()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


trainer = L.Trainer(max_epochs=1)
trainer.fit(Task(), torch.utils.data.DataLoader(torch.randn(64, 8), batch_size=8))
