"""One training job as a user would write it: the thing that is rehearsed and measured.

    python bench/job.py MODEL [--build-only]

With `--build-only` it ends when the model is built on the CPU: the interpreter, `import torch`, the
import of the model's library and the model are what no rehearsal of this job can avoid.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any, Callable

import torch

STEPS = 3
"""What `ghostgpu run` stops after by default."""


@dataclass
class Job:
    """A model, and a step that trains it."""

    model: torch.nn.Module
    optimizer: Callable[[Any], torch.optim.Optimizer]
    loss: Callable[[torch.nn.Module], torch.Tensor]
    """From fresh inputs on the card."""
    dtype: torch.dtype = torch.float32


def bert_base() -> Job:
    """BERT-base, masked language modelling, fp32, 32 sequences of 512 tokens, AdamW."""
    # The batch of its paper's fine-tuning, at the full length of its positions.
    from transformers import BertConfig, BertForMaskedLM

    def loss(model: torch.nn.Module) -> torch.Tensor:
        tokens = torch.randint(0, 30522, (32, 512), device="cuda")
        result: torch.Tensor = model(input_ids=tokens, labels=tokens).loss
        return result

    return Job(BertForMaskedLM(BertConfig()), torch.optim.AdamW, loss)


def resnet50() -> Job:
    """ResNet-50, fp32, 256 pictures of 224 × 224, SGD with momentum."""
    # The batch of its paper.
    import torchvision

    def loss(model: torch.nn.Module) -> torch.Tensor:
        pictures = torch.randn(256, 3, 224, 224, device="cuda")
        labels = torch.randint(0, 1000, (256,), device="cuda")
        return torch.nn.functional.cross_entropy(model(pictures), labels)

    def sgd(parameters: Any) -> torch.optim.Optimizer:
        return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)

    return Job(torchvision.models.resnet50(), sgd, loss)


def llama_7b() -> Job:
    """A Llama of 6.7 billion parameters, bf16, one sequence of 512 tokens, AdamW."""
    from transformers import LlamaConfig, LlamaForCausalLM

    def loss(model: torch.nn.Module) -> torch.Tensor:
        tokens = torch.randint(0, 32000, (1, 512), device="cuda")
        result: torch.Tensor = model(input_ids=tokens, labels=tokens).loss
        return result

    config = LlamaConfig(
        hidden_size=4096,
        intermediate_size=11008,
        num_hidden_layers=32,
        num_attention_heads=32,
        vocab_size=32000,
    )
    return Job(LlamaForCausalLM(config), torch.optim.AdamW, loss, torch.bfloat16)


JOBS = {"bert-base": bert_base, "resnet50": resnet50, "llama-7b": llama_7b}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=JOBS)
    parser.add_argument("--build-only", action="store_true")
    arguments = parser.parse_args()
    job = JOBS[arguments.model]()
    if arguments.build_only:
        return
    model = job.model.to("cuda", job.dtype)
    optimizer = job.optimizer(model.parameters())
    for _ in range(STEPS):
        job.loss(model).backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
