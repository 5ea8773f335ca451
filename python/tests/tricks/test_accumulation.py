# Modules and gradients are reached by index and name, which torch's types do not know.
# ruff: noqa: E501
# mypy: disable-error-code="arg-type,assignment,attr-defined,index,misc,name-defined,no-any-return,no-untyped-call,operator,union-attr"
"""Accumulated small batches end where large batches do, whatever weighs them and whoever loops."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any, Callable, Optional

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from in_a_copy import in_a_copy  # noqa: E402
from torch import nn  # noqa: E402
from training_cases import gpt2, in_float64, next_token_loss  # noqa: E402

from ghostgpu import tricks  # noqa: E402
from ghostgpu.tricks import cross_entropy_in_pieces  # noqa: E402
from ghostgpu.tricks.accumulation_weights import MEAN, SUM, UNKNOWN, reduction_of  # noqa: E402

SAMPLES = 11
"""In batches of 4 and 2 the last is short, and so is the last window of two batches of 2."""
LENGTH = 6


# Libraries warn of each other, and of what they are going to change.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def every_test_in_float64() -> Iterator[None]:
    with in_float64():
        yield


def data() -> list[dict[str, torch.Tensor]]:
    """Sequences with very different numbers of labels; one has none."""
    generator = torch.Generator().manual_seed(7)
    tokens = torch.randint(0, 40, (SAMPLES, LENGTH), generator=generator)
    counts = [6, 2, 5, 0, 3, 6, 2, 4, 6, 3, 5]
    labels = tokens.clone()
    for row, count in zip(labels, counts):
        row[count:] = -100
    return [{"input_ids": x, "labels": y} for x, y in zip(tokens, labels)]


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.head = nn.Embedding(40, 8), nn.Linear(8, 40)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.embedding(tokens).tanh())


def token_mean(out: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(out.flatten(0, 1), labels.flatten())


def weighted_mean(out: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    weights = torch.linspace(0.5, 2, 40)
    loss = nn.CrossEntropyLoss(weight=weights, label_smoothing=0.1)
    return loss(out.transpose(1, 2), labels)


def summed(out: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(out.flatten(0, 1), labels.flatten(), reduction="sum")


def sample_mean(out: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return 0.3 * F.mse_loss(out.mean((1, 2)), labels.clamp(0).double().mean(1))


LOSSES = {
    "mean over tokens": token_mean,
    "weighted mean over tokens": weighted_mean,
    "sum": summed,
    "mean over samples": sample_mean,
}


def parameters_of(model: nn.Module) -> list[torch.Tensor]:
    return [each.detach().clone() for each in model.parameters()]


Train = Callable[[int, Any], list[torch.Tensor]]
"""Trains with batches of a size and a loss; returns the parameters."""


def plain_loop(size: int, loss_of: Any) -> list[torch.Tensor]:
    torch.manual_seed(0)
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    loader = torch.utils.data.DataLoader(data(), batch_size=size)
    for _ in range(2):
        for batch in loader:
            optimizer.zero_grad()
            loss_of(model(batch["input_ids"]), batch["labels"]).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
    return parameters_of(model)


def accelerate_loop(size: int, loss_of: Any, steps: int = 1) -> list[torch.Tensor]:
    from accelerate import Accelerator

    torch.manual_seed(0)
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    loader = torch.utils.data.DataLoader(data(), batch_size=size)
    accelerator = Accelerator(gradient_accumulation_steps=steps, cpu=True)
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
    for _ in range(2):
        for batch in loader:
            with accelerator.accumulate(model):
                accelerator.backward(loss_of(model(batch["input_ids"]), batch["labels"]))
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 0.5)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
    return parameters_of(model)


def lightning_loop(size: int, loss_of: Any) -> list[torch.Tensor]:
    import lightning.pytorch as lightning

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = Model()

        def training_step(self, batch: Any, at: int) -> torch.Tensor:
            return loss_of(self.model(batch["input_ids"]), batch["labels"])

        def configure_optimizers(self) -> Any:
            optimizer = torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)
            schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
            return [optimizer], [{"scheduler": schedule, "interval": "step"}]

    torch.manual_seed(0)
    module = Module()
    trainer = lightning.Trainer(
        max_epochs=2,
        accelerator="cpu",
        gradient_clip_val=0.5,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(module, torch.utils.data.DataLoader(data(), batch_size=size))
    return parameters_of(module)


LOOPS = {
    "plain": (plain_loop, None),
    "Accelerate": (accelerate_loop, "accelerate.accelerator"),
    "Lightning": (lightning_loop, "lightning.pytorch"),
}


def assert_close(found: list[torch.Tensor], expected: list[torch.Tensor]) -> None:
    for one, other in zip(found, expected):
        assert torch.allclose(torch.as_tensor(one), other, rtol=1e-11, atol=1e-14)


Request = tuple[str, dict[str, str]]


def compare(
    train: Train,
    loss_of: Any,
    needs: Optional[str],
    small: int = 2,
    others: tuple[Request, ...] = (),
) -> None:
    """`others`: tricks that the small batches are trained with as well."""
    if needs is not None:
        pytest.importorskip(needs)  # here, so that copies need not

    def large() -> list[Any]:
        return [each.numpy() for each in train(4, loss_of)]

    def accumulated() -> list[Any]:
        started = tricks.start(torch, [("accumulation", {"steps": "2"}), *others])
        found = [each.numpy() for each in train(small, loss_of)]
        assert all(each.did for each in started.accounts())
        return found

    assert_close(in_a_copy(accumulated), [torch.as_tensor(each) for each in in_a_copy(large)])


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("loop", LOOPS)
def test_windows_are_large_batches(loop: str, loss: str) -> None:
    train, needs = LOOPS[loop]
    compare(train, LOSSES[loss], needs)


def test_windows_of_windows_are_large_batches() -> None:
    def train(size: int, loss_of: Any) -> list[torch.Tensor]:
        # Batches of 1, of which the script makes windows of 2, and we of these again.
        return accelerate_loop(4, loss_of) if size == 4 else accelerate_loop(1, loss_of, 2)

    compare(train, token_mean, "accelerate.accelerator")


class IgnoresCount:
    """A model's loss that is a mean, though it is told the number of labels in the window."""

    def __call__(self, logits: Any, labels: Any, vocab_size: int, **_: Any) -> torch.Tensor:
        return next_token_loss(logits, labels, vocab_size)


def transformers_loop(size: int, loss_of: Any) -> list[torch.Tensor]:
    from transformers import Trainer, TrainingArguments

    torch.manual_seed(0)
    model = gpt2()
    if loss_of is not None:
        model.loss_function = loss_of
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            per_device_train_batch_size=size,
            num_train_epochs=2,
            learning_rate=0.1,
            optim="sgd",
            max_grad_norm=0.5,
            use_cpu=True,
            report_to=[],
            save_strategy="no",
            disable_tqdm=True,
        )
        Trainer(model, arguments, train_dataset=data()).train()
    return parameters_of(model)


@pytest.mark.parametrize("loss", [None, IgnoresCount()], ids=["counts", "ignores the count"])
def test_windows_of_transformers_are_large_batches(loss: Any) -> None:
    compare(transformers_loop, loss, "transformers.trainer")


def own_loss_loop(size: int, loss_of: Any) -> list[torch.Tensor]:
    """A loop as people write it, with a model that computes its loss."""
    torch.manual_seed(0)
    model = gpt2()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(2):
        for batch in torch.utils.data.DataLoader(data(), batch_size=size):
            optimizer.zero_grad()
            model(**batch).loss.backward()
            optimizer.step()
    return parameters_of(model)


CHUNKS: Request = ("chunking", {"chunks": "2"})
LOSS_IN_PIECES: Request = ("loss-head", {"chunks": "2"})


@pytest.mark.parametrize(
    "others",
    [(CHUNKS,), (LOSS_IN_PIECES,), (CHUNKS, LOSS_IN_PIECES)],
    ids=["chunks", "loss in pieces", "both"],
)
@pytest.mark.parametrize("loop", [own_loss_loop, plain_loop], ids=["of the model", "of the script"])
def test_losses_in_chunks_and_pieces_weigh_as_much_as_they_would(
    loop: Train, others: tuple[Request, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cross_entropy_in_pieces, "LARGE", 1)
    compare(loop, token_mean, "transformers", others=others)


def test_reductions_are_read_from_the_graph() -> None:
    out = torch.randn(4, 5, requires_grad=True)
    labels = torch.tensor([0, 1, -100, 2])
    cases = {
        (MEAN, 3.0): F.cross_entropy(out, labels) / 8 + 0.1 * out.square().sum(),
        (MEAN, None): F.binary_cross_entropy_with_logits(out, out.detach().sigmoid()),
        (SUM, None): F.cross_entropy(out, labels, reduction="sum"),
        (UNKNOWN, None): F.cross_entropy(out, labels, reduction="sum") / 3,
    }
    for (kind, count), loss in cases.items():
        found = reduction_of(loss)
        assert found.kind == kind
        assert (None if found.count is None else float(found.count)) == count
    assert reduction_of(out.square().sum().exp()).kind == UNKNOWN
    assert reduction_of(torch.ones(())).kind == UNKNOWN
