# Modules and gradients are reached by index and name, which torch's types do not know.
# ruff: noqa: E501
# mypy: disable-error-code="arg-type,assignment,attr-defined,call-overload,index,misc,name-defined,no-any-return,no-untyped-call,operator,union-attr"
"""Whatever a training loop looks like, a trick is exact for it or refuses it by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, Callable

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from in_a_copy import in_a_copy  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.utils import rnn  # noqa: E402
from training_cases import classes, in_float64, mlp, numbers  # noqa: E402

from ghostgpu import tricks  # noqa: E402
from ghostgpu.tricks.refusal import Refused  # noqa: E402

SAMPLES = 7

Loop = Callable[[], list[torch.Tensor]]
"""Trains something, and returns what must not depend on tricks."""


@pytest.fixture(autouse=True)
def every_test_in_float64() -> Iterator[None]:
    with in_float64():
        yield


def ends(*models: nn.Module) -> list[torch.Tensor]:
    parameters = [each for model in models for each in model.parameters()]
    return [each.detach() for each in parameters] + [each.grad for each in parameters]


def trained(model: nn.Module, loss_of: Callable[[int], Any], steps: int = 3) -> list[torch.Tensor]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for at in range(steps):
        optimizer.zero_grad()
        loss_of(at).backward()
        optimizer.step()
    return ends(model)


def closure_that_is_called_again() -> list[torch.Tensor]:
    model = mlp()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = model(numbers(0, SAMPLES, 6)).square().mean()
        loss.backward()
        return loss

    for _ in range(2):
        optimizer.step(closure)
    return ends(model)


def two_optimizers() -> list[torch.Tensor]:
    model = mlp()
    optimizers = [
        torch.optim.SGD(model[0].parameters(), lr=0.1),
        torch.optim.Adam(model[3].parameters(), lr=0.01),
    ]
    for at in range(4):
        loss = F.cross_entropy(model(numbers(at, SAMPLES, 6)), classes(at, 4, SAMPLES))
        loss.backward()
        optimizers[at % 2].step()
        model.zero_grad()
    return ends(model)[:6]


def gradient_penalty() -> list[torch.Tensor]:
    critic = mlp(6, 1)

    def loss(at: int) -> torch.Tensor:
        x = numbers(at, SAMPLES, 6).requires_grad_()
        (slope,) = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
        return (slope.norm(dim=1) - 1).square().mean()

    return trained(critic, loss)


class WithLoss(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = mlp(), nn.Linear(4, 3)

    def loss(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(self.head(self.body(x)), y)


def loss_of_a_method() -> list[torch.Tensor]:
    model = WithLoss()
    return trained(model, lambda at: model.loss(numbers(at, SAMPLES, 6), classes(at, 3, SAMPLES)))


@dataclasses.dataclass
class Found:
    rows: torch.Tensor
    boxes: list[torch.Tensor]
    others: dict[str, Any]


class Detector(nn.Module):
    """Returns rows of several kinds in several containers."""

    def __init__(self, has_time_first: bool) -> None:
        super().__init__()
        self.body, self.head = mlp(), nn.Linear(4, 6)
        self.has_time_first = has_time_first

    def forward(self, x: torch.Tensor) -> Found:
        out = self.head(self.body(x))
        if self.has_time_first:
            return Found(out[:, 0], [out.transpose(0, 1)], {})
        return Found(out[:, 0], [out.flatten(0, 1), out], {"count": 3, "mean": out.mean((1, 2))})


def loss_of_all(found: Found) -> torch.Tensor:
    terms = [found.rows, *found.boxes, found.others.get("mean", found.rows)]
    return sum(each.sin().sum() / (at + 1) for at, each in enumerate(terms))


def results_in_containers() -> list[torch.Tensor]:
    model = Detector(has_time_first=False)
    return trained(model, lambda at: loss_of_all(model(numbers(at, SAMPLES, 5, 6))))


def results_with_time_first() -> list[torch.Tensor]:
    model = Detector(has_time_first=True)
    return trained(model, lambda at: loss_of_all(model(numbers(at, SAMPLES, 5, 6))))


class Reader(nn.Module):
    def __init__(self, total: Any = None) -> None:
        super().__init__()
        self.lstm, self.total = nn.LSTM(6, 4, batch_first=True), total

    def forward(self, x: Any, lengths: Any = None) -> torch.Tensor:
        if isinstance(x, rnn.PackedSequence):
            return self.lstm(x)[1][0][0]
        packed = rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        out, _ = rnn.pad_packed_sequence(
            self.lstm(packed)[0], batch_first=True, total_length=self.total
        )
        return out


LENGTHS = torch.tensor([5, 2, 4, 1, 3, 5, 2])


def packed_sequences() -> list[torch.Tensor]:
    model = Reader()
    x = rnn.pack_padded_sequence(
        numbers(0, SAMPLES, 5, 6), LENGTHS, batch_first=True, enforce_sorted=False
    )
    return trained(model, lambda at: model(x).square().mean())


def sequences_packed_inside() -> list[torch.Tensor]:
    model = Reader(total=5)
    return trained(model, lambda at: model(numbers(at, SAMPLES, 5, 6), LENGTHS).square().mean())


def sequences_as_long_as_the_longest() -> list[torch.Tensor]:
    model = Reader()
    return trained(model, lambda at: model(numbers(at, SAMPLES, 5, 6), LENGTHS).square().mean())


class Named(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = mlp()

    def forward(self, *, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return self.body(x) * scale[:, None]


def keywords_alone() -> list[torch.Tensor]:
    model = Named()
    return trained(
        model,
        lambda at: model(scale=numbers(at, SAMPLES), x=numbers(at, SAMPLES, 6)).square().mean(),
    )


class Cell(nn.Module):
    """Goes through the first dimension as time, without a layer that tells."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(6, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state, states = x.new_zeros(x.shape[1], 4), []
        for each in x:
            state = self.cell(each, state)
            states.append(state)
        return torch.stack(states)


def time_first() -> list[torch.Tensor]:
    model = Cell()
    return trained(model, lambda at: model(numbers(at, SAMPLES, 3, 6)).square().mean())


def channels_last() -> list[torch.Tensor]:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 2, 3))
    model = model.to(memory_format=torch.channels_last)

    def loss(at: int) -> torch.Tensor:
        x = numbers(at, SAMPLES, 3, 8, 8).contiguous(memory_format=torch.channels_last)
        out = model(x)
        assert out.is_contiguous(memory_format=torch.channels_last)
        return out.square().mean()

    return trained(model, loss)


def one_sample() -> list[torch.Tensor]:
    model = mlp()
    return trained(model, lambda at: model(numbers(at, 1, 6)).square().mean())


def two_samples() -> list[torch.Tensor]:
    model = mlp()
    return trained(model, lambda at: model(numbers(at, 2, 6)).square().mean())


class Waves(nn.Module):
    def __init__(self, mixes: bool) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 4, dtype=torch.complex128)
        self.mixes = mixes

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(torch.fft.fft(x, dim=0 if self.mixes else 1))


def complex_numbers() -> list[torch.Tensor]:
    model = Waves(mixes=False)
    return trained(model, lambda at: model(numbers(at, SAMPLES, 6)).abs().square().mean())


class AgainstQueue(nn.Module):
    """Compares samples with earlier ones, which the script puts into the queue."""

    def __init__(self) -> None:
        super().__init__()
        self.body = mlp()
        self.register_buffer("queue", torch.ones(4, 8))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        out = self.body(x)
        return out @ self.queue.clone(), out

    def enqueue(self, out: torch.Tensor) -> None:
        self.queue[:, : len(out)] = out.detach().T


def queue_filled_before_backward() -> list[torch.Tensor]:
    model = AgainstQueue()

    def loss(at: int) -> torch.Tensor:
        similar, out = model(numbers(at, SAMPLES, 6))
        model.enqueue(out)
        return similar.square().mean()

    return trained(model, loss)


def queue_filled_after_backward() -> list[torch.Tensor]:
    model = AgainstQueue()
    found: list[torch.Tensor] = []
    for at in range(3):
        similar, out = model(numbers(at, SAMPLES, 6))
        model.zero_grad()
        similar.square().mean().backward()
        model.enqueue(out)
        found += ends(model)
    return found


def complex_numbers_of_all_samples() -> list[torch.Tensor]:
    model = Waves(mixes=True)
    return trained(model, lambda at: model(numbers(at, SAMPLES, 6)).abs().square().mean())


class WritesOver(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = mlp()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x.sub_(0.5).mul_(2))


def inputs_written_over() -> list[torch.Tensor]:
    model = WritesOver()
    return trained(model, lambda at: model(numbers(at, SAMPLES, 6)).square().mean())


def inputs_reused_by_the_script() -> list[torch.Tensor]:
    model, place = mlp(), torch.empty(SAMPLES, 6)

    def loss(at: int) -> torch.Tensor:
        return model(place.copy_(numbers(at, SAMPLES, 6))).square().mean()

    return trained(model, loss)


def other_parameters() -> list[torch.Tensor]:
    """The inner step of meta-learning: the model runs with parameters that are not its own."""
    model = mlp()
    own = {name: each * 1.5 for name, each in model.named_parameters()}
    out = torch.func.functional_call(model, own, (numbers(0, SAMPLES, 6),))
    out.square().mean().backward()
    return ends(model)


def _ignore(*_: Any) -> None:
    """A hook that does nothing."""


def backward_hook() -> list[torch.Tensor]:
    model = mlp()
    model[1].register_full_backward_hook(_ignore)
    return trained(model, lambda at: model(numbers(at, SAMPLES, 6)).square().mean())


def hook_before_forward() -> list[torch.Tensor]:
    model = mlp()
    model[1].register_forward_pre_hook(_ignore)
    return trained(model, lambda at: model(numbers(at, SAMPLES, 6)).square().mean())


def sparse_gradients() -> list[torch.Tensor]:
    model = nn.Sequential(nn.Embedding(11, 5, sparse=True), nn.Flatten(), nn.Linear(15, 2))
    for at in range(3):
        model.zero_grad()
        model(classes(at, 11, SAMPLES, 3)).square().mean().backward()
    return [each.grad.to_dense() for each in model.parameters()]


def gradients_of_some() -> list[torch.Tensor]:
    model = mlp()
    wanted = [model[0].weight, model[3].bias]
    model(numbers(0, SAMPLES, 6)).square().mean().backward(inputs=wanted)
    assert model[3].weight.grad is None
    return [each.grad for each in wanted]


EXACT: list[Loop] = [
    closure_that_is_called_again,
    two_optimizers,
    loss_of_a_method,
    results_in_containers,
    sequences_packed_inside,
    keywords_alone,
    channels_last,
    one_sample,
    two_samples,
    complex_numbers,
    inputs_reused_by_the_script,
    queue_filled_after_backward,
    sparse_gradients,
    gradients_of_some,
]

REFUSED: dict[Loop, str] = {
    gradient_penalty: "differentiates its gradients",
    results_with_time_first: "no row for each sample",
    packed_sequences: "PackedSequence",
    sequences_as_long_as_the_longest: "no row for each sample",
    time_first: "depend on the other samples",
    complex_numbers_of_all_samples: "depend on the other samples",
    inputs_written_over: "writes over argument 1",
    queue_filled_before_backward: "its buffer queue is written to between the forward pass and",
    other_parameters: "other parameters",
    backward_hook: "backward hook",
    hook_before_forward: "forward hook",
}


def with_tricks(loop: Loop, *requests: tuple[str, dict[str, str]]) -> Any:
    def run() -> Any:
        started = tricks.start(torch, requests)
        torch.manual_seed(0)
        try:
            found = [each.resolve_conj().numpy() for each in loop()]
        except Refused as refused:
            return refused.reason
        assert loop is one_sample or started.accounts()[0].did is not None
        return found

    return in_a_copy(run)


@pytest.mark.parametrize("loop", EXACT, ids=lambda loop: loop.__name__)
def test_chunks_are_exact(loop: Loop) -> None:
    torch.manual_seed(0)
    expected = loop()
    found = with_tricks(loop, ("chunking", {"chunks": "3"}))
    assert not isinstance(found, str), found
    for one, other in zip(found, expected):
        bound = 1e-12 * float(other.abs().max())
        torch.testing.assert_close(torch.as_tensor(one), other, rtol=0, atol=bound)


@pytest.mark.parametrize("loop", REFUSED, ids=lambda loop: loop.__name__)
def test_chunks_are_refused_by_name(loop: Loop) -> None:
    loop()  # which is a training
    reason = with_tricks(loop, ("chunking", {"chunks": "3"}))
    assert isinstance(reason, str) and REFUSED[loop] in reason, reason


def adversaries() -> list[torch.Tensor]:
    generator, critic = mlp(6, 4), mlp(4, 1)
    optimizers = [torch.optim.SGD(each.parameters(), lr=0.1) for each in (generator, critic)]
    for at in range(4):
        optimizers[1].zero_grad()
        fake = generator(numbers(at, SAMPLES, 6))
        F.softplus(critic(fake.detach())).mean().backward()
        optimizers[1].step()
        optimizers[0].zero_grad()
        F.softplus(-critic(fake)).mean().backward()  # leaves something in the critic's gradients
        optimizers[0].step()
    return ends(generator, critic)


@pytest.mark.parametrize(
    ("loop", "reason"),
    [
        (closure_that_is_called_again, "several times"),
        (adversaries, "another backward pass adds"),
    ],
)
def test_windows_are_refused_by_name(loop: Loop, reason: str) -> None:
    loop()
    found = with_tricks(loop, ("accumulation", {"steps": "2"}))
    assert isinstance(found, str) and reason in found, found
