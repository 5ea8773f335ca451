"""accelerate with gradient accumulation: a ViT of transformers on small images."""

import argparse

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset
from transformers import ViTConfig, ViTForImageClassification

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=48)
parser.add_argument("--samples", type=int, default=400)
parser.add_argument("--accumulate", type=int, default=2)
parser.add_argument("--precision", default="no")
args = parser.parse_args()
accelerator = Accelerator(
    gradient_accumulation_steps=args.accumulate, mixed_precision=args.precision
)
data = TensorDataset(torch.randn(args.samples, 3, 128, 128), torch.randint(0, 10, (args.samples,)))
model = ViTForImageClassification(ViTConfig(image_size=128, num_hidden_layers=6, num_labels=10))
optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
model, optimizer, train, test = accelerator.prepare(
    model, optimizer, DataLoader(data, args.batch_size, shuffle=True), DataLoader(data, 100)
)
for epoch in range(2):
    model.train()
    for images, labels in train:
        with accelerator.accumulate(model):
            loss = model(pixel_values=images, labels=labels).loss
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
    model.eval()
    right = 0
    with torch.no_grad():
        for images, labels in test:
            right += (model(pixel_values=images).logits.argmax(-1) == labels).sum().item()
    accelerator.print(f"epoch {epoch} {loss.item():.3f} {right}")
    accelerator.save(accelerator.get_state_dict(model), "vit.pt")
