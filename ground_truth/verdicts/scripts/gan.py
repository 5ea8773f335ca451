"""A DCGAN: two networks, two optimizers, samples after each epoch."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=256)
parser.add_argument("--width", type=int, default=64)
parser.add_argument("--samples", type=int, default=1500)
args = parser.parse_args()
width, noise = args.width, 100

generator = nn.Sequential(
    nn.ConvTranspose2d(noise, width * 8, 4, 1, 0, bias=False),
    nn.BatchNorm2d(width * 8),
    nn.ReLU(True),
    nn.ConvTranspose2d(width * 8, width * 4, 4, 2, 1, bias=False),
    nn.BatchNorm2d(width * 4),
    nn.ReLU(True),
    nn.ConvTranspose2d(width * 4, width * 2, 4, 2, 1, bias=False),
    nn.BatchNorm2d(width * 2),
    nn.ReLU(True),
    nn.ConvTranspose2d(width * 2, width, 4, 2, 1, bias=False),
    nn.BatchNorm2d(width),
    nn.ReLU(True),
    nn.ConvTranspose2d(width, 3, 4, 2, 1, bias=False),
    nn.Tanh(),
).cuda()
discriminator = nn.Sequential(
    nn.Conv2d(3, width, 4, 2, 1, bias=False),
    nn.LeakyReLU(0.2, True),
    nn.Conv2d(width, width * 2, 4, 2, 1, bias=False),
    nn.BatchNorm2d(width * 2),
    nn.LeakyReLU(0.2, True),
    nn.Conv2d(width * 2, width * 4, 4, 2, 1, bias=False),
    nn.BatchNorm2d(width * 4),
    nn.LeakyReLU(0.2, True),
    nn.Conv2d(width * 4, width * 8, 4, 2, 1, bias=False),
    nn.BatchNorm2d(width * 8),
    nn.LeakyReLU(0.2, True),
    nn.Conv2d(width * 8, 1, 4, 1, 0, bias=False),
    nn.Flatten(0),
).cuda()
generator_optimizer = torch.optim.Adam(generator.parameters(), 2e-4, (0.5, 0.999))
discriminator_optimizer = torch.optim.Adam(discriminator.parameters(), 2e-4, (0.5, 0.999))
fixed = torch.randn(64, noise, 1, 1, device="cuda")
loader = DataLoader(
    TensorDataset(torch.randn(args.samples, 3, 64, 64)), args.batch_size, shuffle=True
)
for epoch in range(2):
    for (real,) in loader:
        real = real.cuda()
        ones, zeros = torch.ones(len(real), device="cuda"), torch.zeros(len(real), device="cuda")
        discriminator.zero_grad()
        real_loss = F.binary_cross_entropy_with_logits(discriminator(real), ones)
        real_loss.backward()
        fake = generator(torch.randn(len(real), noise, 1, 1, device="cuda"))
        fake_loss = F.binary_cross_entropy_with_logits(discriminator(fake.detach()), zeros)
        fake_loss.backward()
        discriminator_optimizer.step()
        generator.zero_grad()
        loss = F.binary_cross_entropy_with_logits(discriminator(fake), ones)
        loss.backward()
        generator_optimizer.step()
    with torch.no_grad():
        samples = generator(fixed).cpu()
    print(f"epoch {epoch} {loss.item():.3f} {samples.mean():.3f}")
    torch.save([generator.state_dict(), discriminator.state_dict()], "gan.pt")
