"""Progressive resizing: images grow from epoch to epoch, and the trunk is trained only later."""

import argparse

import torch
import torch.nn.functional as F
import torchvision
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=72)
parser.add_argument("--samples", type=int, default=400)
parser.add_argument("--sizes", type=int, nargs="+", default=[64, 64, 96, 128])
parser.add_argument("--frozen-epochs", type=int, default=0)
args = parser.parse_args()
model = torchvision.models.resnet34(num_classes=20).cuda()
head = list(model.fc.parameters())
trunk = [parameter for name, parameter in model.named_parameters() if not name.startswith("fc.")]
optimizer = torch.optim.AdamW([{"params": trunk}, {"params": head}], lr=1e-3)
labels = torch.randint(0, 20, (args.samples,))
for epoch, size in enumerate(args.sizes):
    for parameter in trunk:
        parameter.requires_grad_(epoch >= args.frozen_epochs)
    data = TensorDataset(torch.randn(args.samples, 3, size, size), labels)
    model.train()
    for images, wanted in DataLoader(data, args.batch_size, shuffle=True):
        loss = F.cross_entropy(model(images.cuda()), wanted.cuda(), label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = sum(
            (model(images.cuda()).argmax(1).cpu() == wanted).sum().item()
            for images, wanted in DataLoader(data, 2 * args.batch_size)
        )
    print(f"epoch {epoch} size {size} right {right}")
    torch.save(model.state_dict(), f"progressive-{epoch}.pt")
