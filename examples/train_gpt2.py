"""Trains a GPT-2 on the bytes of a text file, in plain PyTorch.

Nothing here knows GhostGPU: the script is what it would be for a real card, and runs on one.

    python examples/train_gpt2.py --text my_book.txt
    ghostgpu run --gpu 2080ti examples/train_gpt2.py --batch-size 8

The model has the size of GPT-2 small and starts from random weights, so nothing is downloaded.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset
from transformers import GPT2Config, GPT2LMHeadModel

# GPT-2 small: 124 million parameters.
MODEL = GPT2Config(
    n_layer=12,  # transformer blocks
    n_head=12,  # attention heads in each
    n_embd=768,  # width of the residual stream
    # The text is read as bytes, which need 256 entries. The table stays as large as GPT-2's: it
    # decides how large the logits are, batch × length × vocabulary, the largest tensor of all.
    vocab_size=50257,
)

LEARNING_RATE = 3e-4  # common for this size with AdamW
WEIGHT_DECAY = 0.1  # pulls weights towards zero a little, against overfitting
CLIP_NORM = 1.0  # longest gradient that is taken as it is; longer ones are scaled down


class Windows(Dataset[torch.Tensor]):
    """Every stretch of `length` bytes of a text, one starting at each multiple of `stride`."""

    def __init__(self, text: bytes, length: int, stride: int) -> None:
        # A text that is too short is repeated until it fills at least a few windows.
        while len(text) < length + 64 * stride:
            text += text
        self.tokens = torch.frombuffer(bytearray(text), dtype=torch.uint8)
        self.length = length
        self.stride = stride

    def __len__(self) -> int:
        return (len(self.tokens) - self.length) // self.stride

    def __getitem__(self, index: int) -> torch.Tensor:
        start = index * self.stride
        return self.tokens[start : start + self.length].long()


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    # This file is a text too: the default makes the example run without any data.
    parser.add_argument("--text", type=Path, default=Path(__file__), help="what to learn")
    parser.add_argument("--batch-size", type=int, default=8, help="windows in one forward pass")
    parser.add_argument("--accumulate", type=int, default=1, help="forward passes per step")
    parser.add_argument("--length", type=int, default=1024, help="bytes in a window; 1024 at most")
    parser.add_argument("--epochs", type=int, default=1, help="times through the text")
    parser.add_argument("--save", type=Path, help="where to put the trained weights")
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    device = torch.device("cuda")
    torch.manual_seed(0)

    windows = Windows(arguments.text.read_bytes(), arguments.length, stride=arguments.length // 4)
    # Windows that do not fill a batch are left out, so that all batches have one shape.
    batches = DataLoader(windows, arguments.batch_size, shuffle=True, drop_last=True)

    model = GPT2LMHeadModel(MODEL).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)

    for epoch in range(arguments.epochs):
        for number, tokens in enumerate(batches, start=1):
            tokens = tokens.to(device)
            # The model shifts the labels by one itself: each byte is asked to predict the next.
            loss = model(input_ids=tokens, labels=tokens).loss
            # Several small batches add up to the gradient of one large batch.
            (loss / arguments.accumulate).backward()
            if number % arguments.accumulate == 0:
                torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
                print(f"epoch {epoch} batch {number}: loss {loss.item():.3f}")

    if arguments.save is not None:
        torch.save(model.state_dict(), arguments.save)


if __name__ == "__main__":
    main()
