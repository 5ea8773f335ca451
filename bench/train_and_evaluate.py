"""Plain trainings with an evaluation after each epoch, for measuring `ghostgpu plan`.

    python bench/train_and_evaluate.py {bert-base,gpt2,resnet50} [--batch-size N]

With their default batches, none of them fits on a card of 11 GiB.
"""

from __future__ import annotations

import argparse
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

BATCHES = {"bert-base": 32, "gpt2": 8, "resnet50": 128}
EPOCHS = 3


class Samples(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Any number of identical samples."""

    def __init__(self, count: int, inputs: torch.Tensor, target: torch.Tensor) -> None:
        self._count = count
        self._sample = (inputs, target)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self._sample


def language_loss(model: Any, inputs: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    result: torch.Tensor = model(input_ids=inputs, labels=target).loss
    return result


def picture_loss(model: Any, inputs: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(model(inputs), target)


def build(name: str) -> tuple[torch.nn.Module, torch.Tensor, torch.Tensor]:
    """A model, and one sample for it."""
    if name == "resnet50":
        import torchvision

        picture = torch.zeros(3, 224, 224)
        return torchvision.models.resnet50(), picture, torch.tensor(1)
    import transformers

    if name == "gpt2":
        tokens = torch.ones(1024, dtype=torch.long)
        model: Any = transformers.GPT2LMHeadModel(transformers.GPT2Config())
    else:
        tokens = torch.ones(512, dtype=torch.long)
        model = transformers.BertForMaskedLM(transformers.BertConfig())
    return model, tokens, tokens


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=BATCHES)
    parser.add_argument("--batch-size", type=int)
    arguments = parser.parse_args()
    batch = arguments.batch_size or BATCHES[arguments.model]
    model, inputs, target = build(arguments.model)
    loss_of = picture_loss if arguments.model == "resnet50" else language_loss
    training = DataLoader(Samples(100_000, inputs, target), batch, shuffle=True)
    evaluation = DataLoader(Samples(2_000, inputs, target), batch)
    model = model.to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range(EPOCHS):
        model.train()
        for inputs, target in training:
            optimizer.zero_grad()
            loss = loss_of(model, inputs.to("cuda"), target.to("cuda"))
            loss.backward()
            optimizer.step()
        model.eval()
        total = 0.0
        with torch.no_grad():
            for inputs, target in evaluation:
                total += loss_of(model, inputs.to("cuda"), target.to("cuda")).item()


if __name__ == "__main__":
    main()
