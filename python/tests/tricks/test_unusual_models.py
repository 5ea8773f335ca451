# Modules and gradients are reached by index and name, which torch's types do not know.
# ruff: noqa: E501
# mypy: disable-error-code="arg-type,assignment,attr-defined,index,misc,name-defined,no-any-return,no-untyped-call,operator,union-attr"
"""Models that keep state, return more than rows, or do in backward what forward does not show.

Chunks are exact for them, or refused by name before the first step.
"""

from __future__ import annotations

import collections
import random
from collections.abc import Iterator
from typing import Any, Callable

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.utils import parametrizations, parametrize  # noqa: E402
from training_cases import Call, classes, in_float64, mlp, numbers, plain  # noqa: E402

from ghostgpu.tricks.chunking.chunker import Chunker  # noqa: E402
from ghostgpu.tricks.chunking.trial import Trial  # noqa: E402
from ghostgpu.tricks.refusal import Refused  # noqa: E402

SAMPLES = 8

Loss = Callable[[Call, nn.Module, int], torch.Tensor]


@pytest.fixture(autouse=True)
def every_test_in_float64_as_exact_as_a_card_in_float32(
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[None]:
    monkeypatch.setattr(Trial, "_tolerance", lambda trial, tensor: 1e-2)
    with in_float64():
        yield


class Model(nn.Module):
    def __init__(self, inputs: int = 6, outputs: int = 4) -> None:
        super().__init__()
        self.body = mlp(inputs, outputs)


def squares(call: Call, model: nn.Module, at: int) -> torch.Tensor:
    return call(model, numbers(at, SAMPLES, 6)).square().mean()


# Exact


class Annealed(Model):
    """Counts its calls, in an attribute."""

    calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return self.body(x) * 0.9**self.calls


class Scored(Model):
    """Returns its loss, and how many samples were right."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        out = self.body(x)
        return F.cross_entropy(out, y), (out.argmax(1) == y).sum()


def scored(call: Call, model: nn.Module, at: int) -> torch.Tensor:
    loss, right = call(model, numbers(at, SAMPLES, 6), classes(at, 4, SAMPLES))
    return loss + right


class Padded(Model):
    """Ignores a label that is not negative."""

    def __init__(self) -> None:
        super().__init__(5, 11)
        self.embedding = nn.Embedding(11, 5)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        out = self.body(self.embedding(x))
        return F.cross_entropy(out.flatten(0, 1), y.flatten(), ignore_index=0)


class Masked(Padded):
    """Computes the mean over what a mask counts."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        mask = y > 0
        out = self.body(self.embedding(x)).flatten(0, 1)
        losses = F.cross_entropy(out, y.flatten(), reduction="none")
        return (losses * mask.flatten()).sum() / mask.sum()


class MaskedFromOutside(Padded):
    def forward(  # type: ignore[override]
        self, x: torch.Tensor, y: torch.Tensor, valid: torch.Tensor
    ) -> torch.Tensor:
        out = self.body(self.embedding(x)).flatten(0, 1)
        losses = F.cross_entropy(out, y.flatten(), reduction="none")
        return (losses * valid.flatten()).sum() / valid.sum()


def padded_later(call: Call, model: nn.Module, at: int) -> torch.Tensor:
    """The first batch has no padding."""
    x, y = (1 + classes(at + offset, 10, SAMPLES, 5) for offset in (0, 50))
    lengths = 1 + (torch.arange(SAMPLES) * 3 + at) % 5 if at else torch.full((SAMPLES,), 5)
    valid = torch.arange(5) < lengths[:, None]
    y = y * valid
    extra = (valid.double(),) if isinstance(model, MaskedFromOutside) else ()
    return call(model, x, y, *extra)


class OfClasses(Model):
    """Weights its classes."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weights", torch.tensor([0.1, 0.2, 3.0, 1.0]))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(self.body(x), y, weight=self.weights)


def of_one_class_at_first(call: Call, model: nn.Module, at: int) -> torch.Tensor:
    y = classes(at, 4, SAMPLES) if at else torch.full((SAMPLES,), 2)
    return call(model, numbers(at, SAMPLES, 6), y)


class Perceiving(nn.Module):
    """A generator whose loss goes through a frozen network, which is called by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.generator = mlp(6, 6)
        self.frozen = mlp(6, 5).eval().requires_grad_(False)


def perceived(call: Call, model: nn.Module, at: int) -> torch.Tensor:
    x = numbers(at, SAMPLES, 6)
    made = call(model.generator, x)
    return F.l1_loss(made, x) + F.mse_loss(call(model.frozen, made), call(model.frozen, x))


class Reversed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return -gradient


class Adapted(Model):
    """Reverses the gradient of a second head."""

    def __init__(self) -> None:
        super().__init__()
        self.domain = mlp(4, 2)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        out = self.body(x)
        return out, self.domain(Reversed.apply(out))


def adapted(call: Call, model: nn.Module, at: int) -> torch.Tensor:
    out, domain = call(model, numbers(at, SAMPLES, 6))
    return F.cross_entropy(out, classes(at, 4, SAMPLES)) + domain.square().mean()


class ThawedLater(Model):
    """Whether its first result has a gradient depends on what is frozen."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        features = self.body(x)
        return features, self.head(features)


def thawed_later(call: Call, model: nn.Module, at: int) -> torch.Tensor:
    model.body.requires_grad_(at >= 2)
    features, out = call(model, numbers(at, SAMPLES, 6))
    return features.square().mean() + out.sin().mean()


def with_gradients_of_inputs_later(call: Call, model: nn.Module, at: int) -> torch.Tensor:
    model.body.requires_grad_(False)
    x = numbers(at, SAMPLES, 6).requires_grad_(at >= 2)
    features, out = call(model, x)
    loss = features.square().mean() + out.sin().mean()
    if at >= 2:
        (gradient,) = torch.autograd.grad(loss, x, retain_graph=True)
        loss = loss + gradient.sum() * out.sum()
    return loss


EXACT: dict[str, tuple[Callable[[], nn.Module], Loss]] = {
    "counter": (Annealed, squares),
    "loss and count": (Scored, scored),
    "padding ignored": (Padded, padded_later),
    "masked labels": (Masked, padded_later),
    "mask among arguments": (MaskedFromOutside, padded_later),
    "weighted classes": (OfClasses, of_one_class_at_first),
    "frozen critic": (Perceiving, perceived),
    "gradient reversal": (Adapted, adapted),
    "thawed": (ThawedLater, thawed_later),
    "inputs with gradients": (ThawedLater, with_gradients_of_inputs_later),
}


def trained(make: Callable[[], nn.Module], loss_of: Loss, call: Call) -> list[torch.Tensor]:
    torch.manual_seed(0)
    model = make()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for at in range(20):
        optimizer.zero_grad()
        loss = loss_of(call, model, at)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [torch.stack(losses), *(each.detach() for each in model.parameters())]


def through_chunks() -> Call:
    made = Chunker()
    made.chunks = 3
    return lambda model, *args, **options: made.call(model.__call__, model, args, options)


@pytest.mark.parametrize("name", EXACT)
def test_parameters_after_twenty_steps_in_chunks_are_those_of_whole_batches(name: str) -> None:
    make, loss = EXACT[name]
    found, expected = (trained(make, loss, call) for call in (through_chunks(), plain))
    for one, other in zip(found, expected):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12 * float(other.abs().max()))


# Refused


class Sized(Model):
    def forward(self, x: torch.Tensor) -> dict[str, Any]:
        return {"rows": self.body(x), "count": len(x)}


class Mining(Model):
    """Returns for each sample which other one is nearest."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        out = self.body(x)
        return out, (torch.cdist(out, out) + 1e6 * torch.eye(len(out))).argmin(1)


class Injected(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, loss: torch.Tensor) -> torch.Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return gradient, torch.ones(())


class Balanced(Model):
    """Adds an auxiliary loss in backward, as some mixtures of experts do."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.body(x)
        return Injected.apply(out, 1e-3 * out.softmax(1).mean(0).square().sum())


class Normalised(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient / (gradient.norm() + 1e-6)


class Normalising(Model):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return Normalised.apply(self.body(x)).sin()


class Hooked(Model):
    """Registers a hook on a tensor inside."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.body(x)
        if out.requires_grad:
            out.register_hook(lambda gradient: gradient / (gradient.norm() + 1e-6))
        return out.sin()


class Standardised(Model):
    """Has its own batch norm, without statistics, and dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training:
            x = (x - x.mean(0)) / (x.std(0) + 1e-3)
        return self.body(self.dropout(x))


class DepthDrawn(Model):
    """Drops layers by a generator that nobody else knows, beside dropout."""

    def __init__(self) -> None:
        super().__init__(6, 6)
        self.layers = nn.ModuleList(mlp(6, 6) for _ in range(6))
        self.dropout = nn.Dropout(0.1)
        self.generator = random.Random(0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.body(self.dropout(x))
        for layer in self.layers:
            if not self.training or self.generator.random() < 0.5:
                x = x + layer(x)
        return x


class DrawnNoise(Model):
    def __init__(self) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x + torch.randn(x.shape, generator=self.generator))


GENERATOR = random.Random(0)


class DepthDrawnOutside(DepthDrawn):
    """Its generator is not even an attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.generator = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.body(self.dropout(x))
        for layer in self.layers:
            if not self.training or GENERATOR.random() < 0.5:
                x = x + layer(x)
        return x


class Autoencoder(nn.Module):
    """Draws in evaluation, too."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = mlp(6, 4), mlp(4, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.encoder(x)
        return self.decoder(out + torch.randn_like(out))


class WithPrompt(Model):
    """Has a tensor to train that is not one of its parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.prompt = torch.zeros(6, requires_grad=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x + self.prompt)


class Centred(Model):
    """Keeps a mean over the batch in an attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.center = torch.zeros(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.body(x)
        result = out - self.center
        self.center = 0.999 * self.center + 0.001 * out.detach().mean(0)
        return result


class CentredInData(Model):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("center", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.body(x)
        result = out - self.center.clone()
        self.center.data.lerp_(out.detach().mean(0), 0.001)
        return result


class Decaying(Model):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.body(x)
        self.body[0].weight.data.mul_(0.999)
        return out


KEPT: list[torch.Tensor] = []


class Keeping(Model):
    """Puts a loss into a list that the script knows."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.body(x)
        KEPT[:] = [out.square().mean()]
        return out


class Queueing(Model):
    """Keeps the means of earlier batches."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = collections.deque([torch.ones(4)] * 3, maxlen=3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.body(x)
        result = out @ torch.stack(list(self.queue)).T
        self.queue.append(out.detach().mean(0))
        return result


class Quantising(Model):
    """Replaces its codes by an average of what they stand for."""

    def __init__(self) -> None:
        super().__init__()
        self.codes = nn.Parameter(torch.randn(5, 4), requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.body(x)
        nearest = F.one_hot(torch.cdist(out, self.codes).argmin(1), 5).double()
        quantised = nearest @ self.codes
        codes = 0.99 * self.codes + 0.01 * nearest.T @ out.detach()
        self.codes = nn.Parameter(codes, requires_grad=False)
        return out + (quantised - out).detach()


class Remembering(Model):
    """Keeps a number of the batch in an attribute."""

    largest = 0.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.body(x)
        self.largest = float(out.detach().max())
        return out


REFUSED: list[tuple[type[nn.Module], str]] = [
    (Sized, r"output\['count'\] is 2 for 2 samples and 4 for 4"),
    (Mining, "depend on the other samples"),
    (Balanced, "adds gradients of its own"),
    (Normalising, "gradients depend on which samples"),
    (Hooked, "gradients depend on which samples"),
    (Standardised, "depend on the other samples"),
    (DepthDrawn, "draws from generator, a generator of its own"),
    (DrawnNoise, "draws from generator, a generator of its own"),
    (DepthDrawnOutside, "computed again from the same state"),
    (Autoencoder, "draws random numbers in eval"),
    (WithPrompt, "neither among its arguments nor among its parameters"),
    (Centred, "keeps center of the batch"),
    (CentredInData, "the data of its buffer center"),
    (Decaying, "changes its own parameters"),
    (Keeping, "leaves a tensor with a graph behind"),
    (Remembering, "keeps largest of the batch"),
    (Queueing, "changes queue"),
    (Quantising, "replaces its own parameters"),
]


@pytest.mark.parametrize(
    ("make", "reason"), REFUSED, ids=lambda each: getattr(each, "__name__", "")
)
def test_what_forward_does_not_show_is_refused_before_the_first_step(
    make: type[nn.Module], reason: str
) -> None:
    torch.manual_seed(0)
    model = make()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    random_numbers = torch.get_rng_state()
    with pytest.raises(Refused, match=reason):
        through_chunks()(model, numbers(0, SAMPLES, 6))
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items()) or (
        make is Decaying
    )
    assert torch.equal(random_numbers, torch.get_rng_state())
    assert all(each.grad is None for each in model.parameters())


@pytest.mark.parametrize("make", [Queueing, Quantising, Centred, Remembering, DrawnNoise])
def test_a_model_that_cannot_be_cut_trains_as_it_is_unless_memory_runs_out(
    make: type[nn.Module],
) -> None:
    made = Chunker()
    made.survives = True

    def surviving(model: nn.Module, *arguments: Any, **options: Any) -> Any:
        return made.call(model.__call__, model, arguments, options)

    found, expected = (trained(make, squares, call) for call in (surviving, plain))
    assert made.left_alone
    assert all(torch.equal(one, other) for one, other in zip(found, expected))


def test_weights_that_are_cached_are_refused() -> None:
    model = nn.Sequential(parametrizations.weight_norm(nn.Linear(6, 6)), nn.Linear(6, 4))
    with parametrize.cached(), pytest.raises(Refused, match="in a list, a cache"):
        through_chunks()(model, numbers(0, SAMPLES, 6))


def test_a_model_inside_of_a_transformed_function_is_refused() -> None:
    model, call = mlp(), through_chunks()

    def loss(parameters: dict[str, torch.Tensor]) -> torch.Tensor:
        return call(model, numbers(0, SAMPLES, 6)).square().mean()

    own = {name: each.detach() for name, each in model.named_parameters()}
    with pytest.raises(Refused, match=r"torch\.func"):
        torch.func.grad(loss)(own)
