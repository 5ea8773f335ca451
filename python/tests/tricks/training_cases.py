# Modules and gradients are reached by index and name, which torch's types do not know.
# ruff: noqa: E501
# mypy: disable-error-code="arg-type,assignment,attr-defined,index,misc,name-defined,no-any-return,no-untyped-call,operator,union-attr"
"""Trainings whose gradients must not depend on how a batch is cut.

Each is made of models, and of a step that calls them through `call` and runs its backward passes.
"""

from __future__ import annotations

import contextlib
import copy
import importlib.util
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Callable, Optional

import torch
import torch.nn.functional as F
from torch import nn

Call = Callable[..., Any]
"""Calls a model: `call(model, *arguments, **options)`."""
Step = Callable[[Call, list[nn.Module], int], list[torch.Tensor]]
"""One step with the batch of a number: backward passes included; returns the losses."""


@dataclass(frozen=True)
class Case:
    make: Callable[[], list[nn.Module]]
    step: Step
    draws: bool = False
    """Whether it draws dropout masks: those of chunks are others than those of the whole batch."""
    needs: str = "torch"

    @property
    def is_possible(self) -> bool:
        return importlib.util.find_spec(self.needs) is not None


@contextlib.contextmanager
def in_float64() -> Iterator[None]:
    """Inside, numbers are as exact as they can be, and sums always in the same order."""
    before, threads = torch.get_default_dtype(), torch.get_num_threads()
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
        torch.set_num_threads(threads)


def plain(model: nn.Module, *arguments: Any, **options: Any) -> Any:
    return model(*arguments, **options)


def by_hand(chunks: int) -> Call:
    """Calls a model for one chunk after the other, graphs and all, and joins what they return.

    For models whose arguments are all batched tensors, and whose result is one, or has a loss
    that is a mean over samples beside it.
    """

    def call(model: nn.Module, *arguments: Any, **options: Any) -> Any:
        samples = len(next(iter([*arguments, *options.values()])))
        size, larger = divmod(samples, chunks)
        sizes = [size + (at < larger) for at in range(chunks)]
        results = []
        for at in range(chunks):
            begin = sum(sizes[:at])
            rows = slice(begin, begin + sizes[at])
            part = {name: each[rows] for name, each in options.items()}
            results.append(model(*(each[rows] for each in arguments), **part))
        if isinstance(results[0], torch.Tensor):
            return torch.cat(results)
        joined = copy.copy(results[0])
        joined.loss = sum(r.loss * n for r, n in zip(results, sizes)) / samples
        joined.logits = torch.cat([each.logits for each in results])
        return joined

    return call


def numbers(at: int, *shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(100 + at + sum(shape))
    drawn = torch.randn(*shape, generator=generator, dtype=torch.float64, device="cpu")
    return drawn.to(torch.get_default_device(), torch.get_default_dtype())


def classes(at: int, count: int, *shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(200 + at + sum(shape))
    drawn = torch.randint(0, count, shape, generator=generator, device="cpu")
    return drawn.to(torch.get_default_device())


SAMPLES = 7
"""Not a multiple of any number of chunks that tests use."""


# Small models


def mlp(inputs: int = 6, outputs: int = 4) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, 9), nn.GELU(), nn.LayerNorm(9), nn.Linear(9, outputs))


class Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(x + self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))))


class ResNet(nn.Module):
    """With batch norm, as it is in fine-tuning: its statistics are frozen."""

    def __init__(self, is_frozen: bool = True) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        self.blocks = nn.Sequential(Residual(4), Residual(4))
        self.head = nn.Linear(4, 5)
        for module in self.modules():
            if isinstance(module, nn.BatchNorm2d) and is_frozen:
                module.running_mean.uniform_(-0.5, 0.5)
                module.running_var.uniform_(0.5, 2)
                module.eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(F.relu(self.stem(x))).mean((2, 3)))


class Tagger(nn.Module):
    """An LSTM with its state as a second result, and arguments in a dictionary."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 6)
        self.lstm = nn.LSTM(6, 5, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(10, 3)

    def forward(self, batch: Mapping[str, torch.Tensor], scale: float = 1.0) -> Any:
        out, _ = self.lstm(self.embedding(batch["tokens"]))
        return {"tags": self.head(out) * scale, "features": (out[:, -1], [out.mean(1)])}


class Shared(nn.Module):
    """Takes a mask that all samples share, whose first dimension is as long as the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
        self.head = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor, mask: torch.Tensor, prompt: torch.Tensor) -> torch.Tensor:
        x = x + prompt
        out, _ = self.attention(x, x, x, attn_mask=mask, need_weights=False)
        return self.head(out).flatten(0, 1)  # several rows for each sample


class Spectral(nn.Module):
    """Moves a buffer in each pass, whatever the samples are."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.utils.parametrizations.spectral_norm(nn.Linear(6, 6))
        self.norm = nn.utils.parametrizations.weight_norm(nn.Linear(6, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(torch.tanh(self.layer(x)))


def bert() -> nn.Module:
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        vocab_size=40,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=16,
        num_labels=3,
    )
    return BertForSequenceClassification(config).train()


def gpt2(dropout: float = 0.0) -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=40,
        n_positions=16,
        n_embd=16,
        n_layer=2,
        n_head=2,
        resid_pdrop=dropout,
        embd_pdrop=dropout,
        attn_pdrop=dropout,
        bos_token_id=0,
        eos_token_id=0,
    )
    model = GPT2LMHeadModel(config).train()
    model.loss_function = next_token_loss
    return model


def next_token_loss(
    logits: torch.Tensor,
    labels: torch.Tensor,
    vocab_size: int,
    num_items_in_batch: Optional[torch.Tensor] = None,
    **_: Any,
) -> torch.Tensor:
    """That of transformers, which computes in float32, in the precision of the model."""
    reduction = "mean" if num_items_in_batch is None else "sum"
    loss = F.cross_entropy(
        logits[:, :-1].reshape(-1, vocab_size), labels[:, 1:].flatten(), reduction=reduction
    )
    return loss if num_items_in_batch is None else loss / num_items_in_batch


def padded(at: int) -> dict[str, torch.Tensor]:
    tokens = classes(at, 40, SAMPLES, 10)
    lengths = 2 + classes(at + 50, 9, SAMPLES)
    mask = (torch.arange(10) < lengths[:, None]).long()
    return {
        "input_ids": tokens,
        "attention_mask": mask,
        "labels": tokens.masked_fill(mask == 0, -100),
    }


# Steps


def classify(call: Call, models: list[nn.Module], at: int) -> list[torch.Tensor]:
    loss = F.cross_entropy(call(models[0], numbers(at, SAMPLES, 6)), classes(at, 4, SAMPLES))
    loss.backward()
    return [loss]


def classify_images(call: Call, models: list[nn.Module], at: int) -> list[torch.Tensor]:
    out = call(models[0], numbers(at, SAMPLES, 3, 6, 6))
    loss = F.cross_entropy(out, classes(at, 5, SAMPLES))
    loss.backward()
    return [loss]


def tag(call: Call, models: list[nn.Module], at: int) -> list[torch.Tensor]:
    batch = {"tokens": classes(at, 11, SAMPLES, 8), "note": "not a tensor", "none": None}
    out = call(models[0], batch, scale=0.5)
    loss = F.cross_entropy(out["tags"].flatten(0, 1), classes(at, 3, SAMPLES * 8))
    last, (mean,) = out["features"]
    loss = loss + (last * mean).sum() / 100
    loss.backward()
    return [loss]


def attend(call: Call, models: list[nn.Module], at: int) -> list[torch.Tensor]:
    mask = torch.ones(SAMPLES, SAMPLES).tril().log()
    prompt = numbers(at, 1, SAMPLES, 4).requires_grad_()
    x = numbers(at + 1, SAMPLES, SAMPLES, 4).requires_grad_()
    out = call(models[0], x, mask, prompt)
    loss = F.cross_entropy(out, classes(at, 3, SAMPLES * SAMPLES))
    loss.backward()
    assert prompt.grad is not None and x.grad is not None
    return [loss, prompt.grad, x.grad]


def fine_tune(call: Call, models: list[nn.Module], at: int) -> list[torch.Tensor]:
    batch = {
        "input_ids": classes(at, 40, SAMPLES, 10),
        "attention_mask": torch.ones(SAMPLES, 10, dtype=torch.long),
        "labels": classes(at, 3, SAMPLES),
    }
    out = call(models[0], **batch)
    loss = out.loss + out.logits.square().mean()
    loss.backward()
    return [loss]


def predict(call: Call, models: list[nn.Module], at: int) -> list[torch.Tensor]:
    loss = call(models[0], **padded(at)).loss
    loss.backward()
    return [loss]


def predict_with_count(call: Call, models: list[nn.Module], at: int) -> list[torch.Tensor]:
    batch = padded(at)
    count = (batch["labels"][:, 1:] >= 0).sum() * 2
    loss = call(models[0], num_items_in_batch=count, **batch).loss
    loss.backward()
    return [loss]


def predict_as_tuple(call: Call, models: list[nn.Module], at: int) -> list[torch.Tensor]:
    loss, logits = call(models[0], return_dict=False, **padded(at))[:2]
    (loss + logits.mean()).backward()
    return [loss]


def contrast(call: Call, models: list[nn.Module], at: int) -> list[torch.Tensor]:
    """Every sample is compared with all others; the model is called twice."""
    one = F.normalize(call(models[0], numbers(at, SAMPLES, 6)), dim=1)
    two = F.normalize(call(models[0], numbers(at + 1, SAMPLES, 6)), dim=1)
    loss = F.cross_entropy(one @ two.T / 0.1, torch.arange(SAMPLES))
    loss.backward()
    return [loss]


def two_losses(call: Call, models: list[nn.Module], at: int) -> list[torch.Tensor]:
    """The result is used twice, and one backward pass after the other goes through its graph."""
    out = call(models[0], numbers(at, SAMPLES, 6))
    first = F.cross_entropy(out, classes(at, 4, SAMPLES))
    second = out.square().mean()
    first.backward(retain_graph=True)
    second.backward()
    return [first, second]


def in_place(call: Call, models: list[nn.Module], at: int) -> list[torch.Tensor]:
    """The script writes over what the model returned."""
    out = call(models[0], numbers(at, SAMPLES, 6))
    out[:, 0] *= 2
    loss = out.tanh_().sum()
    loss.backward()
    return [loss]


def train_head(call: Call, models: list[nn.Module], at: int) -> list[torch.Tensor]:
    """A frozen backbone, and a head that is called by itself."""
    features = call(models[0], numbers(at, SAMPLES, 6))
    loss = F.mse_loss(call(models[1], features), numbers(at + 1, SAMPLES, 2))
    loss.backward()
    return [loss]


def frozen_backbone() -> list[nn.Module]:
    return [mlp().requires_grad_(False), mlp(4, 2)]


class FrozenInside(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.backbone = mlp().requires_grad_(False)
        self.head = nn.Linear(4, 4)
        self.unused = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.backbone(x))


def play(call: Call, models: list[nn.Module], at: int) -> list[torch.Tensor]:
    """A GAN: the discriminator's gradients of the generator's loss stay, as they would."""
    generator, discriminator = models
    fake = call(generator, numbers(at, SAMPLES, 6))
    real = call(discriminator, numbers(at + 1, SAMPLES, 4))
    fooled = call(discriminator, fake.detach())
    of_discriminator = F.softplus(-real).mean() + F.softplus(fooled).mean()
    of_discriminator.backward()
    of_generator = F.softplus(-call(discriminator, fake)).mean()
    of_generator.backward()
    return [of_discriminator, of_generator]


def accumulate_twice(call: Call, models: list[nn.Module], at: int) -> list[torch.Tensor]:
    return classify(call, models, at) + classify(call, models, at + 1000)


CASES = {
    "MLP": Case(lambda: [mlp()], classify),
    "ResNet with frozen batch norm": Case(lambda: [ResNet()], classify_images),
    "LSTM": Case(lambda: [Tagger()], tag),
    "mask and prompt for all samples": Case(lambda: [Shared()], attend),
    "spectral norm": Case(lambda: [Spectral()], classify),
    "BERT with dropout": Case(lambda: [bert()], fine_tune, True, "transformers"),
    "GPT-2 with padding": Case(lambda: [gpt2()], predict, needs="transformers"),
    "GPT-2 with a count of items": Case(lambda: [gpt2()], predict_with_count, needs="transformers"),
    "GPT-2 that returns tuples": Case(lambda: [gpt2()], predict_as_tuple, needs="transformers"),
    "contrastive loss, two calls": Case(lambda: [mlp()], contrast),
    "two losses": Case(lambda: [mlp()], two_losses),
    "results written over": Case(lambda: [mlp()], in_place),
    "frozen backbone": Case(frozen_backbone, train_head),
    "frozen backbone inside": Case(lambda: [FrozenInside()], classify),
    "GAN": Case(lambda: [mlp(6, 4), mlp(4, 1)], play),
    "two batches for a step": Case(lambda: [mlp()], accumulate_twice),
}


@dataclass(frozen=True)
class Result:
    losses: list[torch.Tensor]
    gradients: list[Optional[torch.Tensor]]
    parameters: list[torch.Tensor]
    buffers: list[torch.Tensor]


def trained(
    case: Case, call: Call, steps: int, after_step: Callable[[], None] | None = None
) -> Result:
    """Train for some steps, each model with its own optimizer; gradients are those of the last."""
    torch.manual_seed(0)
    models = case.make()
    optimizers = [
        torch.optim.SGD(parameters, lr=0.01, momentum=0.9, weight_decay=0.01)
        for model in models
        if (parameters := [each for each in model.parameters() if each.requires_grad])
    ]
    torch.manual_seed(1)
    losses: list[torch.Tensor] = []
    for at in range(steps):
        for optimizer in optimizers:
            optimizer.zero_grad()
        losses = case.step(call, models, at)
        if after_step is not None:
            after_step()
        for optimizer in optimizers:
            optimizer.step()
    every = [each for model in models for each in model.parameters()]
    return Result(
        [each.detach().clone() for each in losses],
        [None if each.grad is None else each.grad.clone() for each in every],
        [each.detach().clone() for each in every],
        [each.clone() for model in models for each in model.buffers()],
    )


def assert_same(one: Result, other: Result, bound: float = 1e-12) -> None:
    for kind in ("losses", "gradients", "parameters", "buffers"):
        pairs = list(zip(getattr(one, kind), getattr(other, kind)))
        assert len(getattr(one, kind)) == len(getattr(other, kind))
        # Gradients that should be 0, such as those of the bias of keys, are rounding alone.
        largest = max((float(each.abs().max()) for _, each in pairs if each is not None), default=0)
        for first, second in pairs:
            assert (first is None) == (second is None), kind
            if first is None or not first.is_floating_point():
                assert first is None or torch.equal(first, second), kind
                continue
            # Some models compute their loss in float32, whatever they are in.
            exact = bound if first.dtype == torch.float64 else 2e-7
            scale = max(float(second.abs().max()), 1e-6 * largest)
            assert float((first - second).abs().max()) <= exact * scale, kind
