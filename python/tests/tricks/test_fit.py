# Modules and gradients are reached by index and name, which torch's types do not know.
# ruff: noqa: E501
# mypy: disable-error-code="arg-type,assignment,attr-defined,index,misc,name-defined,no-any-return,no-untyped-call,operator,union-attr"
"""`ghostgpu.fit` and `ghostgpu.accumulate` in a script's own code."""

from __future__ import annotations

import copy
import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402
from training_cases import CASES, ResNet, assert_same, in_float64, mlp, numbers, plain, trained  # noqa: E402

import ghostgpu  # noqa: E402


@pytest.fixture(autouse=True)
def every_test_in_float64() -> Iterator[None]:
    with in_float64():
        yield


FITS: dict[str, dict[str, Any]] = {
    "chunks": {"chunks": 3},
    "chunks and checkpoints": {"chunks": 2, "checkpoint": "auto"},
    "surviving": {"survive_oom": True},
    "activations on the host": {"offload_activations": 0},
}


@pytest.mark.parametrize("name", FITS)
def test_a_fitted_model_has_the_same_gradients(name: str) -> None:
    case = CASES["ResNet with frozen batch norm"]
    expected = trained(case, plain, 2)

    def fitted() -> list[nn.Module]:
        model = ResNet()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        same, _ = ghostgpu.fit(model, optimizer, **FITS[name])
        assert same is model and isinstance(model, ResNet)
        return [model]

    assert_same(trained(type(case)(fitted, case.step), plain, 2), expected)


def test_blocks_are_named_as_on_the_command_line_and_checkpointed_once() -> None:
    model = ResNet()
    ghostgpu.fit(model, None, checkpoint="blocks.*,Residual,Conv2d")
    # Those have a class of their own, below the original one. A block's inside is part of it.
    kinds = {name: type(each).__mro__ for name, each in model.named_modules()}
    changed = [name for name, kind in kinds.items() if kind[0].__name__ == kind[1].__name__]
    assert changed == ["stem", "blocks.0", "blocks.1"]
    with pytest.raises(ghostgpu.Refused, match="checkpointed already"):
        ghostgpu.fit(model, None, checkpoint="auto")


def test_checkpointed_batch_norm_moves_its_statistics_once() -> None:
    def step(fits: bool) -> list[torch.Tensor]:
        torch.manual_seed(0)
        model = ResNet(is_frozen=False)
        if fits:
            ghostgpu.fit(model, None, checkpoint="Residual")
        model(numbers(0, 5, 3, 6, 6)).square().sum().backward()
        gradients = [each.grad.clone() for each in model.parameters()]
        return [*gradients, *(each.clone().double() for each in model.buffers())]

    for one, other in zip(step(True), step(False)):
        assert torch.allclose(one, other, rtol=1e-12)


def test_copies_and_files_of_a_fitted_model_are_plain_models() -> None:
    model, _ = ghostgpu.fit(mlp(), None, chunks=2)
    copied = copy.deepcopy(model)
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    assert type(copied) is type(loaded) is nn.Sequential
    x = numbers(0, 6, 6)
    with torch.no_grad():
        assert torch.equal(copied(x), loaded(x))
        copied[0].weight.zero_()
        assert not torch.equal(copied(x), model(x)), "a copy runs its own weights"


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda p: torch.optim.AdamW(p, lr=0.01, foreach=False),
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, foreach=False),
    ],
)
@pytest.mark.parametrize("option", ["step_in_backward", "offload_optimizer"])
def test_other_ways_to_step_lead_to_the_same_parameters(option: str, optimizer: Any) -> None:
    def run(fits: bool) -> list[torch.Tensor]:
        torch.manual_seed(0)
        model = mlp()
        made = optimizer(
            [{"params": model[0].parameters(), "lr": 0.02}, {"params": model[2:].parameters()}]
        )
        schedule = torch.optim.lr_scheduler.ExponentialLR(made, 0.9)
        if fits:
            ghostgpu.fit(model, made, **{option: True})
        for at in range(4):
            model(numbers(at, 5, 6)).square().mean().backward()
            if fits and option == "step_in_backward":
                assert all(each.grad is None for each in model.parameters())
            made.step()
            made.zero_grad()
            schedule.step()
        state = made.state_dict()["state"]
        return [
            *(each.detach().clone() for each in model.parameters()),
            *(
                value
                for _, each in sorted(state.items())
                for value in each.values()
                if isinstance(value, torch.Tensor)
            ),
        ]

    for one, other in zip(run(True), run(False)):
        assert torch.equal(one, other)


def test_a_second_backward_pass_before_the_step_is_refused() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    ghostgpu.fit(model, optimizer, step_in_backward=True)
    model(numbers(0, 5, 6)).sum().backward()
    with pytest.raises(ghostgpu.Refused, match="second backward pass"):
        model(numbers(1, 5, 6)).sum().backward()


@pytest.mark.parametrize(
    ("options", "error", "reason"),
    [
        ({"chunks": 0}, ValueError, "chunks must be at least 1"),
        ({"chunks": 2, "survive_oom": True}, ghostgpu.Refused, "chunking"),
        ({"offload_optimizer": True}, ghostgpu.Refused, "no optimizer"),
        ({"checkpoint": "auto"}, ghostgpu.Refused, "no blocks"),
        ({"checkpoint": "Linear,Nothing"}, ghostgpu.Refused, "no module called Nothing"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], error: Any, reason: str) -> None:
    with pytest.raises(error, match=reason):
        ghostgpu.fit(mlp(), None, **options)


# Accumulation


def windows(sizes: list[int], steps: int, uses_counts: bool, **options: Any) -> list[torch.Tensor]:
    """Train with batches of these sizes, and a window of so many."""
    torch.manual_seed(0)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    data = numbers(0, sum(sizes), 6).split(sizes)
    labels = torch.arange(sum(sizes)).remainder(4).split(sizes)
    for x, y in zip(data, labels):
        with ghostgpu.accumulate(model, optimizer, steps, loader=data, **options) as window:
            loss = F.cross_entropy(model(x), y)
            window.backward(loss, count=len(y) if uses_counts else None)
    return [each.detach().clone() for each in model.parameters()]


@pytest.mark.parametrize("max_norm", [None, 0.01])
def test_windows_are_steps_with_the_batch_that_they_are(max_norm: float | None) -> None:
    # Five batches of different sizes in windows of two: the last is short.
    found = windows([3, 5, 2, 7, 4], 2, True, max_norm=max_norm)
    expected = windows([8, 9, 4], 1, True, max_norm=max_norm)
    for one, other in zip(found, expected):
        assert torch.allclose(one, other, rtol=1e-12)


def test_without_counts_batches_of_a_window_weigh_the_same() -> None:
    for one, other in zip(windows([4, 4, 4], 2, False), windows([8, 4], 1, False)):
        assert torch.allclose(one, other, rtol=1e-12)


def test_sums_schedulers_scalers_and_empty_windows() -> None:
    torch.manual_seed(0)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    x, y = numbers(0, 6, 6), torch.arange(6).remainder(4)
    expected = [
        each.detach() - 0.1 * gradient
        for each, gradient in zip(
            model.parameters(),
            torch.autograd.grad(
                F.cross_entropy(model(x), y, reduction="sum"), [*model.parameters()]
            ),
        )
    ]
    for rows in (slice(0, 2), slice(2, 6)):
        with ghostgpu.accumulate(model, optimizer, 2, scheduler=schedule) as window:
            loss = F.cross_entropy(model(x[rows]), y[rows], reduction="sum")
            window.backward(loss, reduction="sum")
    for one, other in zip(model.parameters(), expected):
        assert torch.allclose(one, other, rtol=1e-12)
    assert schedule.get_last_lr() == [0.05]
    with ghostgpu.accumulate(model, optimizer, 1) as window:
        window.backward(model(x).sum() * 0, count=torch.tensor(0))
    assert all(torch.isfinite(each).all() for each in model.parameters())


def test_a_batch_that_fails_is_not_counted() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(KeyError), ghostgpu.accumulate(model, optimizer, 2):
        raise KeyError
    with ghostgpu.accumulate(model, optimizer, 2) as window:
        assert window.batches == 1 and not window.is_last


def test_importing_the_package_imports_no_torch() -> None:
    source = Path(ghostgpu.__file__).parents[1]
    code = (
        "import sys, time; at = time.perf_counter(); import ghostgpu; "
        "took = time.perf_counter() - at; assert 'torch' not in sys.modules; "
        "assert 'fit' in dir(ghostgpu); assert took < 0.5, took; "
        "from ghostgpu import Refused; assert 'torch' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
