# Modules and gradients are reached by index and name, which torch's types do not know.
# ruff: noqa: E501
# mypy: disable-error-code="arg-type,assignment,attr-defined,index,misc,name-defined,no-any-return,no-untyped-call,operator,union-attr"
"""A step that runs out of memory on its way has the gradients of one that did not."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from training_cases import (  # noqa: E402
    CASES,
    SAMPLES,
    Call,
    assert_same,
    by_hand,
    in_float64,
    mlp,
    numbers,
    plain,
    trained,
)

from ghostgpu.tricks import surviving_oom_steps  # noqa: E402
from ghostgpu.tricks.chunking.chunker import Chunker  # noqa: E402
from ghostgpu.tricks.surviving_oom import own_line  # noqa: E402
from ghostgpu.tricks.surviving_oom_errors import (  # noqa: E402
    is_out_of_memory,
    out_of_memory_error,
)
from ghostgpu.tricks.surviving_oom_steps import SurvivingSteps  # noqa: E402


@pytest.fixture(autouse=True)
def every_test_in_float64() -> Iterator[None]:
    with in_float64():
        yield


def surviving(chunks: int = 1) -> Chunker:
    made = Chunker()
    made.survives, made.chunks = True, chunks
    return made


class Faulty(TorchDispatchMode):
    """Lets some operations of a model fail as if memory had run out, wherever they are."""

    def __init__(self, failing: set[int]) -> None:
        super().__init__()
        self._failing = failing
        self._operations = 0
        self.is_armed = False
        self.failures = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self._operations += self.is_armed
        if self.is_armed and self._operations in self._failing:
            self.failures += 1
            raise out_of_memory_error(torch)("CUDA out of memory. Tried to allocate 20.00 MiB.")
        return func(*args, **(kwargs or {}))


def faulty(model: nn.Module, faults: Faulty, made: Chunker) -> Call:
    """Operations fail only inside the model: what the script does itself cannot be repeated."""

    def make(*arguments: Any, **options: Any) -> Any:
        faults.is_armed = True
        try:
            return model(*arguments, **options)
        finally:
            faults.is_armed = False

    return lambda *args, **options: made.call(make, model, args, options)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if not case.draws])
def test_gradients_are_those_of_a_step_that_did_not_fail(name: str) -> None:
    case = CASES[name]
    if not case.is_possible:
        pytest.skip(f"{case.needs} is not installed")
    expected = trained(case, plain, 2)
    # The first stands in the trial, the others in steps; far enough apart to get on between them.
    drawn = random.Random(name)
    made, faults = surviving(), Faulty({drawn.randint(3, 20), drawn.randint(60, 75)})

    def call(model: nn.Module, *args: Any, **options: Any) -> Any:
        return faulty(model, faults, made)(*args, **options)

    with faults:
        found = trained(case, call, 2)
    assert faults.failures > 0
    assert_same(found, expected)


class FailsInBackward(torch.autograd.Function):
    """Fails as often as `fuse` says, or while a chunk is too large."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, fuse: list[int], fits: int) -> torch.Tensor:
        ctx.fuse, ctx.fits = fuse, fits
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        if len(gradient) > ctx.fits and ctx.fuse[0] > 0:
            ctx.fuse[0] -= 1
            raise out_of_memory_error(torch)("CUDA out of memory.")
        return gradient, None, None


class Failing(nn.Module):
    def __init__(self, fuse: int, fits: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.dropout = nn.Dropout(dropout)
        self.second = nn.Linear(6, 4)
        self.fuse, self.fits = [fuse], fits

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = FailsInBackward.apply(self.dropout(self.first(x)), self.fuse, self.fits)
        return self.second(hidden)


def gradients(model: nn.Module, call: Call) -> list[torch.Tensor]:
    model.zero_grad()
    torch.manual_seed(5)
    call(model, numbers(0, SAMPLES, 6)).square().sum().backward()
    return [each.grad.clone() for each in model.parameters()]


def through(made: Chunker) -> Call:
    return lambda model, *args, **options: made.call(model.__call__, model, args, options)


def test_a_backward_pass_that_fails_is_repeated_in_more_chunks() -> None:
    model = Failing(fuse=100, fits=2)
    made = surviving()
    found = gradients(model, through(made))
    model.fuse[0] = 0
    for one, other in zip(found, gradients(model, plain)):
        assert torch.allclose(one, other, rtol=1e-12)
    assert max(model_chunks(made)) == 4
    assert "backward" in made.growth[0]


class FailingLoss(Failing):
    """Computes its loss itself, so that its chunks are differentiated in forward."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x).square().mean()


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_chunks_that_are_differentiated_in_forward_fail_there_and_are_cut(dropout: float) -> None:
    model, made = FailingLoss(fuse=0, fits=2, dropout=dropout), surviving(2)
    call = through(made)
    gradients(model, call)
    model.fuse[0] = 100
    found = gradients(model, call)
    assert model_chunks(made) == [4] and "forward" in made.growth[-1]
    model.fuse[0] = 0
    for one, other in zip(found, gradients(model, by_hand_of_loss(4))):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-14)


def by_hand_of_loss(chunks: int) -> Call:
    def call(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        pieces = torch.tensor_split(x, chunks)
        return sum(model(piece) * len(piece) for piece in pieces) / len(x)

    return call


def test_where_gradients_do_not_fit_beside_results_chunks_are_repeated() -> None:
    model, made = FailingLoss(fuse=0, fits=0), surviving(SAMPLES)
    call = through(made)
    gradients(model, call)
    model.fuse[0] = 2  # the first sample, twice
    found = gradients(model, call)
    assert model.fuse == [0]
    for one, other in zip(found, gradients(model, plain)):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-14)


def model_chunks(made: Chunker) -> list[int]:
    return [each.chunks for each in made._models.values()]


@pytest.mark.parametrize("chunks", [1, 3])
def test_with_dropout_the_masks_of_the_loss_are_kept(chunks: int) -> None:
    model = Failing(fuse=1, fits=0, dropout=0.5)
    made = surviving(chunks)
    found = gradients(model, through(made))
    model.fuse[0] = 0
    for one, other in zip(found, gradients(model, by_hand(chunks))):
        assert torch.allclose(one, other, rtol=1e-12)
    assert model_chunks(made) == [2 * chunks], "the next step draws its masks in more chunks"


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_it_gives_up_with_a_report_when_nothing_is_left_to_try(dropout: float) -> None:
    model = Failing(fuse=1000, fits=0, dropout=dropout)
    error = out_of_memory_error(torch)
    with pytest.raises(error, match="Failing ran out of memory in backward with a batch of 7"):
        gradients(model, through(surviving()))
    assert all(each.grad is None for each in model.parameters()), "no half of a gradient is left"


def test_buffers_and_generators_are_those_of_a_step_that_did_not_fail() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(6, 4)
            self.register_buffer("passes", torch.zeros(()))
            self.failures = 3

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.passes += 1
            out = nn.functional.dropout(self.layer(x), 0.5, self.training)
            if self.failures and len(x) > 2:
                self.failures -= 1
                raise out_of_memory_error(torch)("CUDA out of memory.")
            return out

    model = Counting()
    torch.manual_seed(5)
    through(surviving())(model, numbers(0, SAMPLES, 6)).sum().backward()
    after = torch.rand(3)
    assert float(model.passes) == 1
    torch.manual_seed(5)
    by_hand(4)(model, numbers(0, SAMPLES, 6))
    assert torch.equal(torch.rand(3), after)


def test_what_a_failed_attempt_held_is_let_go_before_the_next() -> None:
    alive: list[Any] = []
    held: list[int] = []

    class Holding(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(6, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            held.append(sum(each() is not None for each in alive))
            large = self.layer(x)
            alive.append(weakref.ref(large))
            if len(x) > 3:
                raise out_of_memory_error(torch)("CUDA out of memory.")
            return large * 1

    made, model = surviving(), Holding()
    gc.disable()
    try:
        through(made)(model, numbers(0, SAMPLES, 6)).sum().backward()
    finally:
        gc.enable()
    assert held[-1] == 0


def test_models_that_cannot_be_cut_run_as_they_are_until_memory_runs_out() -> None:
    model = nn.Sequential(mlp(), nn.BatchNorm1d(4))
    made = surviving()
    found = gradients(model, through(made))
    for one, other in zip(found, gradients(model, plain)):
        assert torch.equal(one, other)
    assert "BatchNorm1d in training mode" in made.left_alone["Sequential"]


def test_steps_that_fit_are_not_cut() -> None:
    made = surviving()
    gradients(mlp(), through(made))
    assert made.chunked == {} and made.growth == []


OPTIMIZERS = {
    "Adam": lambda each: torch.optim.Adam(each, lr=0.1, amsgrad=True),
    "AdamW": lambda each: torch.optim.AdamW(each, lr=0.1),
    "AdamW, for-loop": lambda each: torch.optim.AdamW(each, lr=0.1, foreach=False),
    "SGD": lambda each: torch.optim.SGD(each, lr=0.1, momentum=0.9, weight_decay=0.1),
    "RMSprop": lambda each: torch.optim.RMSprop(each, lr=0.1, momentum=0.5),
    "Adafactor": lambda each: torch.optim.Adafactor(each, lr=0.1),
}


def stepped(make: Any, steps: int, around: Any) -> list[torch.Tensor]:
    torch.manual_seed(0)
    model = mlp()
    optimizer = make([{"params": model[0].parameters()}, {"params": model[2:].parameters()}])
    for at in range(steps):
        optimizer.zero_grad()
        model(numbers(at, SAMPLES, 6)).square().sum().backward()
        around(optimizer)
    return [each.detach().clone() for each in model.parameters()]


class Unfailing(surviving_oom_steps._State):
    """Small numbers on the host, which the faults are not about."""

    faults: Faulty

    def __init__(self, optimizer: Any) -> None:
        self.faults.is_armed = False
        super().__init__(optimizer)
        self.faults.is_armed = True

    def take_away_new(self) -> None:
        self.faults.is_armed = False
        super().take_away_new()
        self.faults.is_armed = True


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_that_fails_is_repeated_or_said_to_be_half_made(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = SurvivingSteps(torch)
    monkeypatch.setattr(surviving_oom_steps, "_cards", lambda optimizer: [0])
    monkeypatch.setattr(surviving_oom_steps, "release", lambda cards: None)
    monkeypatch.setattr(steps, "_short_of_memory", lambda optimizer, cards: None)
    monkeypatch.setattr(surviving_oom_steps, "_State", Unfailing)
    expected = stepped(OPTIMIZERS[name], 2, lambda optimizer: optimizer.step())
    survived, failed = 0, 0
    for at in range(1, 400, 3):
        faults = Unfailing.faults = Faulty({at})

        def surviving_step(optimizer: Any, faults: Faulty = faults) -> None:
            with faults:
                faults.is_armed = True
                steps.step(optimizer.step, optimizer, (), {})

        try:
            found = stepped(OPTIMIZERS[name], 2, surviving_step)
        except out_of_memory_error(torch) as error:
            assert "cannot be repeated" in str(error)
            failed += 1
            continue
        if not faults.failures:
            break
        survived += 1
        for one, other in zip(found, expected):
            assert torch.allclose(one, other, rtol=1e-12)
    else:
        raise AssertionError("a step has fewer operations")
    assert survived > 0 and failed > 0


def test_the_line_of_the_script_that_ran_out_is_named() -> None:
    try:
        exec(compile("1 / 0", "/home/me/train.py", "exec"))
    except ZeroDivisionError as error:
        assert "memory ran out at /home/me/train.py:1, outside" in own_line(error.__traceback__, [])


OUT_OF_MEMORY = {
    "CUDA out of memory. Tried to allocate 2.00 GiB": True,
    "CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported": True,
    "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`": True,
    "cuDNN error: CUDNN_STATUS_NOT_SUPPORTED. This error may appear if you passed in a "
    "non-contiguous input.": True,
    "GET was unable to find an engine to execute this computation": True,
    "FIND was unable to find an engine to execute this computation": True,
    "cuDNN error: CUDNN_STATUS_ALLOC_FAILED": True,
    "CUDA driver error: CUDA_ERROR_OUT_OF_MEMORY": True,
    "CUDA error: an illegal memory access was encountered": False,
    "CUDA error: device-side assert triggered": False,
    "mat1 and mat2 shapes cannot be multiplied (3x4 and 5x6)": False,
}


@pytest.mark.parametrize("text", OUT_OF_MEMORY)
def test_errors_that_mean_out_of_memory_are_recognised(text: str) -> None:
    assert is_out_of_memory(torch, RuntimeError(text)) is OUT_OF_MEMORY[text]


def test_an_error_behind_another_is_recognised() -> None:
    try:
        try:
            raise out_of_memory_error(torch)("CUDA out of memory.")
        except RuntimeError as error:
            raise RuntimeError("the layer failed") from error
    except RuntimeError as error:
        assert is_out_of_memory(torch, error)
