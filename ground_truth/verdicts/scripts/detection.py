"""Object detection with a small SSD-like head: dense predictions, images of several sizes."""

import argparse
import random

import torch
import torch.nn.functional as F
import torchvision
from torch import nn
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=8)
parser.add_argument("--samples", type=int, default=90)
parser.add_argument("--classes", type=int, default=20)
args = parser.parse_args()
order = torch.Generator().manual_seed(0)
random.seed(2)
sizes = [(256, 256), (256, 320), (320, 256), (320, 384), (384, 384)]
scenes = [torch.randn(3, *random.choice(sizes)) for _ in range(args.samples)]


def collate(images):
    height = max(image.shape[1] for image in images)
    width = max(image.shape[2] for image in images)
    batch = torch.zeros(len(images), 3, height, width)
    for row, image in enumerate(images):
        batch[row, :, : image.shape[1], : image.shape[2]] = image
    return batch


class Detector(nn.Module):
    def __init__(self, anchors=6):
        super().__init__()
        trunk = torchvision.models.resnet34()
        self.stem = nn.Sequential(trunk.conv1, trunk.bn1, trunk.relu, trunk.maxpool, trunk.layer1)
        self.levels = nn.ModuleList([trunk.layer2, trunk.layer3, trunk.layer4])
        self.heads = nn.ModuleList(
            nn.Conv2d(channels, anchors * (4 + args.classes), 3, padding=1)
            for channels in (128, 256, 512)
        )

    def forward(self, x):
        x = self.stem(x)
        outputs = []
        for level, head in zip(self.levels, self.heads):
            x = level(x)
            outputs.append(head(x).permute(0, 2, 3, 1).reshape(len(x), -1, 4 + args.classes))
        return torch.cat(outputs, 1)


loader = DataLoader(scenes, args.batch_size, shuffle=True, collate_fn=collate, generator=order)
model = Detector().cuda()
optimizer = torch.optim.SGD(model.parameters(), 1e-3, momentum=0.9)
for epoch in range(2):
    model.train()
    for images in loader:
        predictions = model(images.cuda())
        boxes, classes = predictions[..., :4], predictions[..., 4:]
        target = torch.zeros_like(classes)
        loss = F.smooth_l1_loss(boxes, torch.zeros_like(boxes))
        loss = loss + torchvision.ops.sigmoid_focal_loss(classes, target, reduction="mean")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for images in DataLoader(scenes[:20], 4, collate_fn=collate):
            best = model(images.cuda())[..., 4:].sigmoid().topk(50, dim=1)[0].cpu()
    print(f"epoch {epoch} {loss.item():.3f} {best.mean():.3f}")
    torch.save(model.state_dict(), "detection.pt")
