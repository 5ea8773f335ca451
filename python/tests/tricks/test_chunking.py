# Modules and gradients are reached by index and name, which torch's types do not know.
# ruff: noqa: E501
# mypy: disable-error-code="arg-type,assignment,attr-defined,index,misc,name-defined,no-any-return,no-untyped-call,operator,union-attr"
"""A batch in chunks has the loss and the gradients of the whole batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402
from training_cases import (  # noqa: E402
    CASES,
    SAMPLES,
    Call,
    ResNet,
    assert_same,
    by_hand,
    classes,
    gpt2,
    in_float64,
    mlp,
    numbers,
    padded,
    plain,
    trained,
)

from ghostgpu.tricks.chunking.chunker import Chunker  # noqa: E402
from ghostgpu.tricks.refusal import Refused  # noqa: E402


@pytest.fixture(autouse=True)
def every_test_in_float64() -> Iterator[None]:
    with in_float64():
        yield


def chunker(chunks: int, evaluation_chunks: int = 1) -> Chunker:
    made = Chunker()
    made.chunks, made.evaluation_chunks = chunks, evaluation_chunks
    return made


def through(made: Chunker) -> Call:
    return lambda model, *args, **options: made.call(model.__call__, model, args, options)


@pytest.mark.parametrize("chunks", [2, 3, SAMPLES + 5])
@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_the_whole_batch(name: str, chunks: int) -> None:
    case = CASES[name]
    if not case.is_possible:
        pytest.skip(f"{case.needs} is not installed")
    reference = by_hand(min(chunks, SAMPLES)) if case.draws else plain
    expected = trained(case, reference, 1)
    made = chunker(chunks)
    assert_same(trained(case, through(made), 1), expected)
    assert max(made.chunked.values()) == min(chunks, SAMPLES)


@pytest.mark.parametrize("name", CASES)
def test_parameters_after_twenty_steps_are_those_of_whole_batches(name: str) -> None:
    case = CASES[name]
    if not case.is_possible:
        pytest.skip(f"{case.needs} is not installed")
    expected = trained(case, by_hand(3) if case.draws else plain, 20)
    assert_same(trained(case, through(chunker(3)), 20), expected)


def test_random_numbers_go_on_as_if_nothing_had_been_repeated() -> None:
    model = nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.5))
    x = numbers(0, SAMPLES, 6)

    def drawn(call: Call) -> torch.Tensor:
        torch.manual_seed(3)
        call(model, x).sum().backward()
        return torch.rand(4)

    assert torch.equal(drawn(through(chunker(3))), drawn(by_hand(3)))


def test_in_evaluation_chunks_are_not_repeated() -> None:
    model = nn.Sequential(mlp(), nn.BatchNorm1d(4)).eval()
    x = numbers(0, SAMPLES, 6)
    made = chunker(1, 3)
    with torch.no_grad():
        out = through(made)(model, x)
        assert torch.allclose(out, model(x), rtol=1e-14)
    assert not out.requires_grad
    assert made.chunked == {"Sequential": 3}


def _counting(calls: list[int]) -> Any:
    def hook(module: nn.Module, arguments: Any, out: Any) -> None:
        calls.append(1)

    return hook


def test_hooks_of_parameters_see_the_gradient_of_the_whole_batch_once() -> None:
    model, x = mlp(), numbers(0, SAMPLES, 6)
    seen: list[torch.Tensor] = []
    model[0].weight.register_hook(lambda gradient: seen.append(gradient.clone()))
    model(x).square().sum().backward()
    through(chunker(3))(model, x).square().sum().backward()
    assert len(seen) == 2
    assert torch.allclose(*seen, rtol=1e-13)


def test_gradients_can_be_asked_for_without_being_kept() -> None:
    model = mlp()
    x = numbers(0, SAMPLES, 6).requires_grad_()
    wanted = [x, model[3].bias]
    expected = torch.autograd.grad(model(x).square().sum(), wanted)
    found = torch.autograd.grad(through(chunker(3))(model, x).square().sum(), wanted)
    assert all(torch.allclose(*pair, rtol=1e-13) for pair in zip(found, expected))
    assert model[0].weight.grad is None


def test_autocast_is_the_same_in_the_repetition() -> None:
    torch.set_default_dtype(torch.float32)
    model, x = mlp(), numbers(0, 8, 6).float()

    def gradient(call: Call) -> torch.Tensor:
        model.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = call(model, x)
        assert out.dtype == torch.bfloat16
        out.float().sum().backward()
        assert model[0].weight.grad is not None
        return model[0].weight.grad

    expected, found = gradient(by_hand(2)).clone(), gradient(through(chunker(2)))
    # Where a graph holds all chunks, their gradients are summed in bfloat16.
    assert torch.allclose(found, expected, rtol=2e-2, atol=2e-2)


def test_the_mode_of_the_forward_pass_holds_in_the_repetition() -> None:
    model, x = nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.5)), numbers(0, SAMPLES, 6)

    def gradient(call: Call) -> torch.Tensor:
        torch.manual_seed(0)
        model.zero_grad()
        model.train()
        loss = call(model, x).square().sum()
        model.eval()
        loss.backward()
        assert not model[1].training
        return model[0].weight.grad.clone()

    assert torch.allclose(gradient(through(chunker(2))), gradient(by_hand(2)), rtol=1e-13)


def test_the_graph_is_freed_as_a_plain_one_is() -> None:
    loss = through(chunker(2))(mlp(), numbers(0, SAMPLES, 6)).sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()


class Recording(nn.Module):
    """Notes how many samples each of its passes has, and whether with a graph."""

    def __init__(self, outputs: int = 1) -> None:
        super().__init__()
        self.layer = nn.Linear(6, outputs)
        self.rest = nn.Linear(6, 6)
        self.passes: list[tuple[int, bool]] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if torch.is_grad_enabled() or len(x) > 2:
            self.passes.append((len(x), torch.is_grad_enabled()))
        return self.layer(self.rest(x).tanh())


def test_the_last_chunk_is_computed_once_where_its_graph_costs_no_memory() -> None:
    model = Recording()
    call = through(chunker(2))
    call(model, numbers(0, 6, 6)).sum().backward()
    model.passes.clear()
    call(model, numbers(0, 6, 6)).sum().backward()
    assert model.passes == [(3, False), (3, True), (3, True)]


def test_no_graph_waits_beside_a_loss_of_large_results() -> None:
    model = Recording(outputs=50)
    call = through(chunker(2))
    call(model, numbers(0, 6, 6)).sum().backward()
    model.passes.clear()
    call(model, numbers(0, 6, 6)).sum().backward()
    assert model.passes == [(3, False), (3, False), (3, True), (3, True)]


def test_a_graph_that_waits_is_let_go_where_another_call_begins() -> None:
    model = Recording()
    call = through(chunker(2))
    call(model, numbers(0, 6, 6)).sum().backward()
    model.passes.clear()
    (call(model, numbers(0, 6, 6)) * call(model, numbers(1, 6, 6))).sum().backward()
    assert model.passes.count((3, False)) == 2
    assert model.passes.count((3, True)) == 5


def test_a_parameter_that_is_changed_before_backward_is_an_error() -> None:
    model = mlp()
    loss = through(chunker(2))(model, numbers(0, SAMPLES, 6)).sum()
    with torch.no_grad():
        model[0].weight.mul_(2)
    with pytest.raises(RuntimeError, match="changed in place"):
        loss.backward()


# What cannot be right is refused, by name, before the first step


class Coupled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x - x.mean(0))


class Pooled(Coupled):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x).mean(0)


class Scalar(Coupled):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x).square().mean().sqrt()


class WithAuxiliaryLoss(Coupled):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.layer(x)
        self.auxiliary = out.square().mean()
        return out


class OwnStatistics(Coupled):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("average", torch.zeros(6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.average.lerp_(x.detach().mean(0), 0.1)
        return self.layer(x)


class MovesItsWeights(Coupled):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            self.layer.weight.mul_(0.99)
        return self.layer(x)


class Opaque:
    def __init__(self) -> None:
        self.inside = torch.ones(SAMPLES, 6)


class TakesOpaque(Coupled):
    def forward(self, x: Opaque) -> torch.Tensor:
        return self.layer(x.inside)


class TimeFirst(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(6, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.lstm(x)[0]


class Encoder(nn.Module):
    """Takes time first, or turns a batch so that it does."""

    def __init__(self, turns: bool, evaluates: bool = False) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(6, 2, 12, dropout=0.0)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.turns = turns
        if evaluates:
            self.encoder.eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.turns:
            return self.encoder(x)
        return self.encoder(x.transpose(0, 1)).transpose(0, 1)


@pytest.mark.parametrize("make", [TimeFirst, lambda: Encoder(False), lambda: Encoder(False, True)])
def test_time_is_not_taken_for_the_batch_where_nothing_is_computed(make: Any) -> None:
    made = Chunker(is_rehearsed=True)
    made.chunks = 2
    with pytest.raises(Refused, match="is the time of sequences, not the batch"):
        through(made)(make(), numbers(0, SAMPLES, 3, 6))


def test_a_model_that_turns_its_batch_is_cut() -> None:
    made = Chunker(is_rehearsed=True)
    made.chunks = 2
    through(made)(Encoder(True), numbers(0, SAMPLES, 3, 6)).sum().backward()
    assert made.chunked == {"Encoder": 2}


def with_hook() -> nn.Module:
    model = mlp()
    model[1].register_forward_hook(_counting([]))
    return model


def two_terms() -> nn.Module:
    from transformers import BertConfig, BertForPreTraining

    config = BertConfig(
        vocab_size=40,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=24,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return BertForPreTraining(config).train()


torch.set_default_dtype(torch.float64)  # as every test has it: these are made before

REFUSED: dict[str, tuple[Any, Any, str]] = {
    "batch norm": (lambda: ResNet(is_frozen=False), numbers(0, SAMPLES, 3, 6, 6), "BatchNorm2d"),
    "samples that see each other": (Coupled, numbers(0, SAMPLES, 6), "depend on the other samples"),
    "one row for all": (Pooled, numbers(0, SAMPLES, 6), "no row for each sample"),
    "one number": (Scalar, numbers(0, SAMPLES, 6), "one number for all samples"),
    "statistics of its own": (OwnStatistics, numbers(0, SAMPLES, 6), "statistics of the batch"),
    "weights that move": (MovesItsWeights, numbers(0, SAMPLES, 6), "its own parameters"),
    "a sealed object": (TakesOpaque, Opaque(), "argument 1, which is a Opaque"),
    "a sparse tensor": (mlp, numbers(0, SAMPLES, 6).to_sparse(), "sparse"),
    "time first": (TimeFirst, numbers(0, SAMPLES, 3, 6), "is the time of sequences"),
    "a hook of the script": (with_hook, numbers(0, SAMPLES, 6), "forward hook"),
    "no batch": (mlp, torch.tensor(1.0), "none of its arguments"),
}
torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_have_other_results_is_refused_by_name(name: str) -> None:
    make, argument, reason = REFUSED[name]
    torch.manual_seed(0)
    model = make()
    with pytest.raises(Refused, match=reason) as refused:
        through(chunker(2))(model, argument)
    assert type(model).__name__ in str(refused.value)
    assert refused.value.alternative


def test_what_forward_leaves_for_the_loss_is_refused_in_the_first_call() -> None:
    with pytest.raises(Refused, match="auxiliary"):
        through(chunker(2))(WithAuxiliaryLoss(), numbers(0, SAMPLES, 6))


def test_a_loss_of_two_means_is_refused() -> None:
    pytest.importorskip("transformers")
    model = two_terms()
    options = {
        "input_ids": classes(0, 40, SAMPLES, 10),
        "labels": classes(1, 40, SAMPLES, 10),
        "next_sentence_label": classes(2, 2, SAMPLES),
    }
    with pytest.raises(Refused, match="neither their sum nor a mean"):
        through(chunker(2))(model, **options)


def test_gradients_of_gradients_are_refused() -> None:
    x = numbers(0, SAMPLES, 6).requires_grad_()
    out = through(chunker(2))(mlp(), x)
    with pytest.raises(Refused, match="create_graph=True"):
        torch.autograd.grad(out.sum(), x, create_graph=True)


def test_evaluation_that_cannot_be_cut_runs_as_it_is() -> None:
    model, x = Coupled(), numbers(0, SAMPLES, 6)
    made = chunker(1, 2)
    with torch.no_grad():
        assert torch.equal(through(made)(model, x), model(x))
    assert "depend on the other samples" in made.left_alone["Coupled"]


class Remembers(nn.Module):
    """Returns its rows, and an object that nobody can join."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 4)

    def forward(self, x: torch.Tensor) -> Any:
        class Memory:
            rows = x

        memory = Memory()
        memory.kept = [x]
        return {"rows": F.dropout(self.layer(x), training=self.training), "memory": memory}


def test_evaluation_whose_results_cannot_be_joined_runs_as_it_is() -> None:
    model, made = Remembers(), chunker(1, evaluation_chunks=3)
    x = numbers(0, SAMPLES, 6)
    with torch.no_grad():
        torch.manual_seed(3)
        expected = model(x)["rows"]
        torch.manual_seed(3)
        found = through(made)(model, x)["rows"]
    assert torch.equal(found, expected)
    assert "Memory, which cannot be joined" in made.left_alone["Remembers"]
    with pytest.raises(Refused, match="cannot be joined"):
        through(chunker(3))(model, x)


def test_evaluation_of_a_loss_needs_no_keys_and_values() -> None:
    pytest.importorskip("transformers")
    model, made = gpt2().eval(), chunker(1, evaluation_chunks=3)
    with torch.no_grad():
        expected = model(**padded(0))
        found = through(made)(model, **padded(0))
    torch.testing.assert_close(found.loss, expected.loss, rtol=1e-12, atol=0)
    torch.testing.assert_close(found.logits, expected.logits, rtol=1e-10, atol=1e-12)
    assert made.chunked == {"GPT2LMHeadModel": 3}


def test_small_helpers_beside_a_model_run_as_they_are() -> None:
    made = chunker(2)
    model = nn.Sequential(nn.Linear(6, 64), nn.Linear(64, 4))
    out = through(made)(model, numbers(0, SAMPLES, 6))

    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.temperature = nn.Parameter(torch.ones(()))

        def forward(self, out: torch.Tensor) -> torch.Tensor:
            return (out * self.temperature).logsumexp((0, 1))

    through(made)(Scaled(), out).backward()
    assert "Scaled" in made.left_alone and "Sequential" in made.chunked


def test_a_label_that_is_ignored_everywhere_in_a_chunk_does_no_harm() -> None:
    pytest.importorskip("transformers")
    model = gpt2()
    batch = padded(0)
    batch["labels"][3:] = -100

    def gradient(call: Call) -> torch.Tensor:
        model.zero_grad()
        call(model, **batch).loss.backward()
        return model.transformer.wte.weight.grad.clone()

    expected = gradient(plain)
    assert torch.isfinite(expected).all()
    assert torch.allclose(gradient(through(chunker(SAMPLES))), expected, rtol=1e-6)


def test_models_are_not_kept_alive() -> None:
    import gc
    import weakref

    made, model = chunker(2), mlp()
    through(made)(model, numbers(0, SAMPLES, 6)).sum().backward()
    watched = weakref.ref(model[0].weight)
    del model
    gc.collect()
    assert watched() is None


def test_the_first_pass_keeps_no_activations() -> None:
    import weakref

    kept: list[Any] = []

    class Watched(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(6, 6)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            hidden = self.layer(x)
            kept.append(weakref.ref(hidden))
            return hidden.tanh()

    out = through(chunker(3))(Watched(), numbers(0, SAMPLES, 6))
    assert all(each() is None for each in kept)
    out.sum().backward()
