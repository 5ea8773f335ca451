"""Trains a torchvision model for three steps, for measuring the first rehearsal of such a job.

    python bench/train_vision.py MODEL [--search]

With `--search`, cuDNN times its engines (`cudnn.benchmark`), as many training scripts ask it to.
"""

from __future__ import annotations

import argparse

import torch
import torchvision


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--search", action="store_true")
    arguments = parser.parse_args()
    torch.backends.cudnn.benchmark = arguments.search
    model = getattr(torchvision.models, arguments.model)().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(3):
        pictures = torch.randn(32, 3, 224, 224, device="cuda")
        labels = torch.randint(0, 1000, (32,), device="cuda")
        torch.nn.functional.cross_entropy(model(pictures), labels).backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
