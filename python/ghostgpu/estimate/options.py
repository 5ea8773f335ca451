"""The job to estimate, from the command line."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Optional

DTYPES = ("fp32", "fp16", "bf16", "pure-bf16")


@dataclass
class Job:
    """A model and how it is trained. None: the model's own, or the usual."""

    name: str
    task: Optional[str]
    batch: int
    seq: Optional[int]
    image: Optional[int]
    optimizer: str
    dtype: str
    strategy: Optional[str]
    lora: Optional[int]
    checkpointing: bool
    accumulate: int
    inference: bool
    classes: Optional[int]
    vocab: Optional[int]
    layers: Optional[int]
    attention: Optional[str]
    padding_mask: bool
    steps: int


def parse(words: list[str]) -> Job:
    """Read the arguments; the command line has checked what it can."""
    parser = argparse.ArgumentParser(prog="ghostgpu estimate")
    parser.add_argument("name")
    parser.add_argument("--task")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--seq", type=int)
    parser.add_argument("--image", type=int)
    parser.add_argument("--optimizer", default="adamw")
    parser.add_argument("--dtype", choices=DTYPES, default="fp32")
    parser.add_argument("--strategy", choices=("ddp", "fsdp2"))
    parser.add_argument("--lora", type=int)
    parser.add_argument("--checkpointing", action="store_true")
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--inference", action="store_true")
    parser.add_argument("--classes", type=int)
    parser.add_argument("--vocab", type=int)
    parser.add_argument("--layers", type=int)
    parser.add_argument("--attention")
    parser.add_argument("--padding-mask", action="store_true")
    parser.add_argument("--steps", type=int, default=3)
    return Job(**vars(parser.parse_args(words)))
