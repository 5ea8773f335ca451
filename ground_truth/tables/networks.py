"""Trains a small convolution net and a small recurrent net for a step: what cuDNN answers to that.

ghostgpu calibrate -o networks.tsv -- python ground_truth/tables/networks.py
"""

from __future__ import annotations

import sys

import torch
from torch import nn


def main() -> int:
    net = nn.Sequential(
        *(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 1), nn.ReLU()),
        *(nn.Conv2d(64, 64, 3, stride=2, groups=64), nn.ReLU(), nn.Conv2d(64, 128, 5, padding=2)),
    ).cuda()
    for batch, layout in ((4, torch.contiguous_format), (32, torch.channels_last)):
        images = torch.randn(batch, 3, 64, 64, device="cuda").to(memory_format=layout)
        for precision in (torch.float32, torch.float16, torch.bfloat16):
            with torch.autocast("cuda", dtype=precision, enabled=precision != torch.float32):
                result = net.to(memory_format=layout)(images)
            result.float().sum().backward()
    for layers, kind in ((2, nn.LSTM), (1, nn.GRU)):
        recurrent = kind(64, 128, layers, dropout=0.1 if layers > 1 else 0.0).cuda()
        recurrent(torch.randn(32, 16, 64, device="cuda"))[0].sum().backward()
    linear = nn.Linear(256, 512).cuda()
    linear(torch.randn(64, 256, device="cuda")).sum().backward()
    torch.cuda.synchronize()
    return 0


if __name__ == "__main__":
    sys.exit(main())
