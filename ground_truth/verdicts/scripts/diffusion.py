"""A small diffusion model with an exponential moving average of its weights."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--width", type=int, default=128)
parser.add_argument("--samples", type=int, default=500)
args = parser.parse_args()


class Residual(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.first = nn.Sequential(
            nn.GroupNorm(8, inputs), nn.SiLU(), nn.Conv2d(inputs, outputs, 3, padding=1)
        )
        self.time = nn.Linear(256, outputs)
        self.second = nn.Sequential(
            nn.GroupNorm(8, outputs), nn.SiLU(), nn.Conv2d(outputs, outputs, 3, padding=1)
        )
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x, time):
        return self.skip(x) + self.second(self.first(x) + self.time(time)[:, :, None, None])


class Denoiser(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(1, 256), nn.SiLU(), nn.Linear(256, 256))
        self.enter = nn.Conv2d(3, width, 3, padding=1)
        self.down = nn.ModuleList(
            [Residual(width, width), Residual(width, 2 * width), Residual(2 * width, 2 * width)]
        )
        self.attention = nn.MultiheadAttention(2 * width, 4, batch_first=True)
        self.up = nn.ModuleList(
            [Residual(4 * width, 2 * width), Residual(4 * width, width), Residual(2 * width, width)]
        )
        self.leave = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x, time):
        time = self.time(time[:, None])
        x = self.enter(x)
        kept = []
        for down in self.down:
            x = down(x, time)
            kept.append(x)
            x = F.avg_pool2d(x, 2)
        shape = x.shape
        flat = x.flatten(2).transpose(1, 2)
        x = x + self.attention(flat, flat, flat)[0].transpose(1, 2).reshape(shape)
        for up in self.up:
            x = F.interpolate(x, scale_factor=2)
            x = up(torch.cat([x, kept.pop()], 1), time)
        return self.leave(x)


model = Denoiser(args.width).cuda()
average = torch.optim.swa_utils.AveragedModel(
    model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.999)
)
optimizer = torch.optim.AdamW(model.parameters(), 2e-4)
loader = DataLoader(
    TensorDataset(torch.randn(args.samples, 3, 32, 32)), args.batch_size, shuffle=True
)
for epoch in range(2):
    for (images,) in loader:
        images = images.cuda()
        noise = torch.randn_like(images)
        time = torch.rand(len(images), device="cuda")
        mixed = images * (1 - time)[:, None, None, None] + noise * time[:, None, None, None]
        loss = F.mse_loss(model(mixed, time), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update_parameters(model)
    with torch.no_grad():
        picture = torch.randn(100, 3, 32, 32, device="cuda")
        for step in range(5):
            picture = picture - 0.2 * average(
                picture, torch.full((100,), 1 - step / 5, device="cuda")
            )
    print(f"epoch {epoch} {loss.item():.3f} {picture.std().item():.3f}")
    torch.save(average.state_dict(), "diffusion.pt")
