"""A U-Net for segmentation, with a Dice loss and evaluation on whole images."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=12)
parser.add_argument("--width", type=int, default=32)
parser.add_argument("--size", type=int, default=192)
parser.add_argument("--eval-size", type=int, default=320)
parser.add_argument("--samples", type=int, default=100)
parser.add_argument("--amp", action="store_true")
args = parser.parse_args()


def block(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
        nn.Conv2d(outputs, outputs, 3, padding=1),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )


class UNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        sizes = [width, width * 2, width * 4, width * 8]
        self.down = nn.ModuleList()
        channels = 3
        for size in sizes:
            self.down.append(block(channels, size))
            channels = size
        self.up = nn.ModuleList()
        self.merge = nn.ModuleList()
        for size in reversed(sizes[:-1]):
            self.up.append(nn.ConvTranspose2d(channels, size, 2, stride=2))
            self.merge.append(block(size * 2, size))
            channels = size
        self.head = nn.Conv2d(channels, 1, 1)

    def forward(self, x):
        skipped = []
        for index, down in enumerate(self.down):
            x = down(x)
            if index < len(self.down) - 1:
                skipped.append(x)
                x = F.max_pool2d(x, 2)
        for up, merge in zip(self.up, self.merge):
            x = merge(torch.cat([up(x), skipped.pop()], 1))
        return self.head(x)


def dice(logits, mask):
    p = logits.sigmoid()
    return 1 - (2 * (p * mask).sum() + 1) / (p.sum() + mask.sum() + 1)


images = torch.randn(args.samples, 3, args.size, args.size)
masks = (torch.rand(args.samples, 1, args.size, args.size) > 0.5).float()
loader = DataLoader(TensorDataset(images, masks), args.batch_size, shuffle=True)
whole = torch.randn(6, 3, args.eval_size, args.eval_size)
model = UNet(args.width).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(2):
    model.train()
    total = 0.0
    for x, mask in loader:
        x, mask = x.cuda(), mask.cuda()
        with torch.autocast("cuda", torch.bfloat16, enabled=args.amp):
            logits = model(x)
            loss = dice(logits, mask) + F.binary_cross_entropy_with_logits(logits, mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        for image in whole:
            area = (model(image[None].cuda()) > 0).float().mean().item()
    print(f"epoch {epoch} loss {total / len(loader):.3f} area {area:.3f}")
    torch.save(model.state_dict(), "unet.pt")
