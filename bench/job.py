"""Training jobs as a user would write them, to be rehearsed and measured.

    python bench/job.py JOB [--build-only]

With `--build-only` it ends when the model is built on the CPU: no rehearsal of this job can avoid
the interpreter, `import torch`, the import of the model's library and building the model.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any, Callable

import torch

STEPS = 3
"""After how many steps `ghostgpu run` stops by default."""


@dataclass
class Job:
    """A model and its training step."""

    model: torch.nn.Module
    optimizer: Callable[[Any], torch.optim.Optimizer]
    loss: Callable[[torch.nn.Module], torch.Tensor]
    """Computes the loss from fresh inputs on the card."""
    dtype: torch.dtype = torch.float32
    autocast: bool = False
    """Whether the forward pass runs under `torch.autocast` with bfloat16."""

    def step(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
        with torch.autocast("cuda", torch.bfloat16, enabled=self.autocast):
            loss = self.loss(model)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def bert_base(sequences: int, tokens_each: int, autocast: bool) -> Job:
    """Masked language modelling with BERT-base and AdamW."""
    from transformers import BertConfig, BertForMaskedLM

    def loss(model: torch.nn.Module) -> torch.Tensor:
        tokens = torch.randint(0, 30522, (sequences, tokens_each), device="cuda")
        result: torch.Tensor = model(input_ids=tokens, labels=tokens).loss
        return result

    return Job(BertForMaskedLM(BertConfig()), torch.optim.AdamW, loss, autocast=autocast)


def resnet50(pictures: int, autocast: bool) -> Job:
    """ResNet-50 on pictures of 224 × 224, SGD with momentum."""
    import torchvision

    def loss(model: torch.nn.Module) -> torch.Tensor:
        batch = torch.randn(pictures, 3, 224, 224, device="cuda")
        labels = torch.randint(0, 1000, (pictures,), device="cuda")
        return torch.nn.functional.cross_entropy(model(batch), labels)

    def sgd(parameters: Any) -> torch.optim.Optimizer:
        return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)

    return Job(torchvision.models.resnet50(), sgd, loss, autocast=autocast)


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


JOBS: dict[str, Callable[[], Job]] = {
    # The batch of BERT's paper for fine-tuning, at the full length of its positions.
    "bert-base 32x512": lambda: bert_base(32, 512, autocast=False),
    # The batch of ResNet's paper.
    "resnet50 256": lambda: resnet50(256, autocast=False),
    # Ever smaller batches, with which the card waits for the host more and more.
    "bert-base 32x128": lambda: bert_base(32, 128, autocast=False),
    "bert-base 1x16": lambda: bert_base(1, 16, autocast=False),
    "resnet50 64": lambda: resnet50(64, autocast=False),
    "resnet50 1": lambda: resnet50(1, autocast=False),
    # Mixed precision makes the card faster and gives the host more to do.
    "bert-base 32x512 bf16": lambda: bert_base(32, 512, autocast=True),
    "bert-base 128x512 bf16": lambda: bert_base(128, 512, autocast=True),
    "resnet50 256 bf16": lambda: resnet50(256, autocast=True),
    "llama-7b 1x512": llama_7b,
}
"""Jobs by model, batch and precision (fp32 unless named)."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("job", choices=JOBS)
    parser.add_argument("--build-only", action="store_true")
    arguments = parser.parse_args()
    job = JOBS[arguments.job]()
    if arguments.build_only:
        return
    model = job.model.to("cuda", job.dtype)
    optimizer = job.optimizer(model.parameters())
    for _ in range(STEPS):
        job.step(model, optimizer)


if __name__ == "__main__":
    main()
