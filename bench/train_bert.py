"""A plain training script with a DataLoader, for measuring `ghostgpu max-batch`: BERT-base on
sequences of 128 tokens."""

from __future__ import annotations

import torch
from torch.utils.data import DataLoader, Dataset
from transformers import BertConfig, BertForMaskedLM


class Texts(Dataset[torch.Tensor]):
    """Any number of identical sequences."""

    def __len__(self) -> int:
        return 100_000

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((128,), 1, dtype=torch.long)


def main() -> None:
    model = BertForMaskedLM(BertConfig()).to("cuda")
    optimizer = torch.optim.AdamW(model.parameters())
    for tokens in DataLoader(Texts(), batch_size=32, shuffle=True):
        tokens = tokens.to("cuda")
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
