# Modules and gradients are reached by index and name, which torch's types do not know.
# ruff: noqa: E501
# mypy: disable-error-code="arg-type,attr-defined,index,misc,name-defined,no-any-return,no-untyped-call,operator,union-attr"
"""Chunks of a model that computes its loss are differentiated where they are computed, once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Callable

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402
from training_cases import Call, classes, in_float64, mlp, numbers, plain  # noqa: E402

from ghostgpu.tricks.chunking.chunker import Chunker  # noqa: E402
from ghostgpu.tricks.hooks import Hooks  # noqa: E402

SAMPLES, WORDS = 7, 6


@pytest.fixture(autouse=True)
def every_test_in_float64() -> Iterator[None]:
    with in_float64():
        yield


class Tagger(nn.Module):
    """Returns the mean over its labels that are not ignored, and notes its passes."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.body = mlp(5, 8)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(8, 4)
        self.graphs: list[bool] = []

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> Any:
        self.graphs.append(torch.is_grad_enabled())
        logits = self.head(self.dropout(self.body(x)))
        return {"loss": F.cross_entropy(logits.flatten(0, 1), labels.flatten()), "logits": logits}


def batch(at: int = 0) -> dict[str, torch.Tensor]:
    labels = classes(at, 4, SAMPLES, WORDS)
    lengths = classes(at + 7, WORDS + 1, SAMPLES).clamp(min=1)
    labels[torch.arange(WORDS) >= lengths[:, None]] = -100
    return {"x": numbers(at, SAMPLES, WORDS, 5), "labels": labels}


def chunker(chunks: int = 3) -> Chunker:
    made = Chunker()
    made.chunks = chunks
    return made


def through(made: Chunker) -> Call:
    return lambda model, *args, **options: made.call(model.__call__, model, args, options)


Step = Callable[[Call, nn.Module], None]


def differentiate(call: Call, model: nn.Module) -> None:
    call(model, **batch())["loss"].backward()


def scale(call: Call, model: nn.Module) -> None:
    (call(model, **batch())["loss"] * 3.5 / 4).backward()


def square(call: Call, model: nn.Module) -> None:
    call(model, **batch())["loss"].square().backward()


def ask(call: Call, model: nn.Module) -> None:
    wanted = [model.head.weight, model.body[0].bias]
    for each, gradient in zip(wanted, torch.autograd.grad(call(model, **batch())["loss"], wanted)):
        each.grad = gradient


def measure(call: Call, model: nn.Module) -> None:
    out = call(model, **batch())
    out["loss"].backward()
    assert out["logits"].argmax(-1).shape == (SAMPLES, WORDS)
    assert out["logits"].requires_grad


def use_other_results(call: Call, model: nn.Module) -> None:
    out = call(model, **batch())
    (out["loss"] + out["logits"].square().mean()).backward()


def use_only_other_results(call: Call, model: nn.Module) -> None:
    call(model, **batch())["logits"].logsumexp((0, 1, 2)).backward()


def go_twice(call: Call, model: nn.Module) -> None:
    loss = call(model, **batch())["loss"]
    loss.backward(retain_graph=True)
    (2 * loss).backward()


def sum_of_calls(call: Call, model: nn.Module) -> None:
    sum(call(model, **batch(at))["loss"] * (at + 1) for at in range(3)).backward()


def accumulate(call: Call, model: nn.Module) -> None:
    for at in range(4):
        (call(model, **batch(at))["loss"] / 4).backward()


def in_vain(call: Call, model: nn.Module) -> None:
    for at in range(4):
        call(model, **batch(at))["loss"].item()
    differentiate(call, model)


def zero_late(call: Call, model: nn.Module) -> None:
    for at in range(3):
        loss = call(model, **batch(at))["loss"]
        model.zero_grad()
        loss.backward()


STEPS: dict[str, Step] = {
    "the loss itself": differentiate,
    "a loss that the script scales": scale,
    "a loss that the script squares": square,
    "gradients that are asked for": ask,
    "accuracy of the results": measure,
    "results in the loss": use_other_results,
    "results instead of the loss": use_only_other_results,
    "two backward passes": go_twice,
    "a sum of calls": sum_of_calls,
    "accumulation": accumulate,
    "calls in vain": in_vain,
    "gradients zeroed after forward": zero_late,
}


def gradients(model: nn.Module, call: Call, step: Step) -> list[torch.Tensor]:
    model.zero_grad()
    step(call, model)
    model.graphs.clear()
    return [each.grad for each in model.parameters()]


@pytest.mark.parametrize("name", STEPS)
def test_gradients_are_those_of_the_whole_batch(name: str) -> None:
    torch.manual_seed(0)
    model, step, call = Tagger(), STEPS[name], through(chunker())
    expected = gradients(model, plain, step)
    for _ in range(3):  # what one step shows changes how the next is made
        found = gradients(model, call, step)
        for one, other in zip(found, expected):
            assert (one is None) == (other is None)
            if one is not None:
                torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-14)


def passes(made: Chunker, model: Tagger, step: Step) -> list[bool]:
    """Whether each pass of a step has a graph, once the model is known."""
    for _ in range(3):
        model.zero_grad()
        step(through(made), model)
    model.zero_grad()
    model.graphs.clear()
    step(through(made), model)
    return model.graphs


@pytest.mark.parametrize("step", [differentiate, scale, measure, ask])
def test_nothing_is_computed_twice(step: Step) -> None:
    assert passes(chunker(), Tagger(), step) == [True] * 3


def test_batches_that_are_accumulated_are_computed_once() -> None:
    assert passes(chunker(), Tagger(), accumulate) == [True] * 12


REPEATED = [False, False, True, True, True]
"""Chunks with and without a graph, where the last one keeps it."""


def test_where_results_are_in_the_loss_chunks_are_repeated() -> None:
    repeated = passes(chunker(), Tagger(), use_other_results)
    assert sorted(repeated) in (REPEATED, [False] * 3 + [True] * 3)


def test_where_nothing_is_differentiated_gradients_are_not_computed_for_long() -> None:
    made, model = chunker(), Tagger()
    passes(made, model, in_vain)
    model.graphs.clear()
    through(made)(model, **batch())["loss"].item()
    assert model.graphs.count(True) <= 1  # that of the last chunk may wait


def test_the_first_call_is_repeated_for_nobody_knows_when_gradients_are_zeroed() -> None:
    model = Tagger()
    through(chunker())(model, **batch())
    assert not any(model.graphs[-3:-1])  # those before are of a trial; the last may wait


def test_new_gradients_do_not_lie_beside_those_that_the_script_is_about_to_zero() -> None:
    made, model = chunker(), Tagger()
    zero_late(through(made), model)
    model.graphs.clear()
    through(made)(model, **batch())
    assert not model.graphs[0]


def test_a_pass_that_fails_leaves_no_gradients_behind() -> None:
    model = Tagger()
    made = chunker()
    differentiate(through(made), model)
    bad = batch()
    bad["labels"][-1] = 4  # a class that is not there, in the last chunk
    with pytest.raises((IndexError, RuntimeError)):
        through(made)(model, **bad)
    stand_ins = made._models[model].stand_ins._of.values()
    assert stand_ins and all(stand_in.grad is None for _, stand_in in stand_ins)


def test_dropout_draws_what_chunks_by_hand_draw() -> None:
    model, data = Tagger(dropout=0.5), batch()
    counts = [(data["labels"][rows] >= 0).sum() for rows in (slice(3), slice(3, 5), slice(5, 7))]

    def by_hand(model: nn.Module, **options: torch.Tensor) -> Any:
        parts = [
            model(**{name: each[rows] for name, each in options.items()})["loss"] * count
            for rows, count in zip((slice(3), slice(3, 5), slice(5, 7)), counts)
        ]
        return {"loss": sum(parts) / sum(counts)}

    def drawn(call: Call) -> list[torch.Tensor]:
        torch.manual_seed(5)
        return [*gradients(model, call, differentiate), torch.rand(3)]

    made = through(chunker())
    drawn(made)
    for one, other in zip(drawn(made), drawn(by_hand)):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-14)


class HalfExact(nn.Module):
    """Computes its loss in float32, in the middle of autocast."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head = nn.Linear(6, 6), nn.Linear(6, 4)
        self.graphs: list[bool] = []
        self.of_head: list[torch.dtype] = []

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> Any:
        self.graphs.append(torch.is_grad_enabled())
        hidden = self.layer(x)
        with torch.autocast("cpu", enabled=False):
            logits = self.head(hidden.float())
            if logits.requires_grad:
                logits.register_hook(lambda gradient: self._note(gradient))
            return F.cross_entropy(logits, labels)

    def _note(self, gradient: torch.Tensor) -> None:
        # What a product of backward is computed in is decided by whether autocast is on.
        self.of_head.append((gradient @ gradient.T).dtype)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_autocast_is_off_in_backward_and_float16_is_left_to_the_scaler(dtype: str) -> None:
    torch.set_default_dtype(torch.float32)
    torch.manual_seed(0)
    model = HalfExact()
    data = {"x": torch.randn(8, 6), "labels": torch.randint(0, 4, (8,))}

    def gradient(call: Call) -> torch.Tensor:
        model.zero_grad()
        with torch.autocast("cpu", dtype=getattr(torch, dtype)):
            loss = call(model, **data)
        loss.backward()
        return model.layer.weight.grad

    expected = gradient(plain)
    call = through(chunker(2))
    gradient(call)
    model.graphs.clear()
    found = gradient(call)
    torch.testing.assert_close(found, expected, rtol=2e-2, atol=2e-2)
    assert set(model.of_head) == {torch.float32}
    is_repeated = False in model.graphs
    assert is_repeated == (dtype == "float16")


def test_backward_passes_inside_of_a_call_are_not_those_of_the_script() -> None:
    hooks = Hooks(torch)
    seen: list[bool] = []
    made = chunker()
    made.own_backward = hooks.own_backward
    hooks.before_backward.append(lambda: seen.append(True))
    patched = [(torch.Tensor, "backward"), (torch.autograd, "backward"), (torch.autograd, "grad")]
    originals = [(owner, name, getattr(owner, name)) for owner, name in patched]
    with contextlib.ExitStack() as stack:
        for owner, name, original in originals:
            stack.callback(setattr, owner, name, original)
            setattr(owner, name, hooks._backward(original, name == "backward"))
        model = Tagger()
        assert passes(made, model, differentiate) == [True] * 3
    assert seen == [True] * 4
