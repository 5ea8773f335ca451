"""Tricks of the first two numeric classes leave losses, gradients, parameters and buffers alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from in_a_copy import in_a_copy  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from training_cases import (  # noqa: E402
    CASES,
    Case,
    ResNet,
    assert_same,
    classify,
    classify_images,
    in_float64,
    plain,
    trained,
)

from ghostgpu import tricks  # noqa: E402
from ghostgpu.tricks import catalogue  # noqa: E402


class Activations(nn.Module):
    """Activations whose input may be written over, and some whose input may not."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(4)
        self.free = nn.LeakyReLU()
        self.conv2 = nn.Conv2d(4, 4, 3, padding=1)
        self.used_again = nn.ReLU()
        self.of_input = nn.ELU()
        self.tanh = nn.Tanh()
        self.after_tanh = nn.ReLU()
        self.head = nn.Linear(4, 5)

    def forward(self, x: Tensor) -> Any:
        x = self.of_input(x)
        x = self.free(self.norm(self.conv1(x)))
        y = self.conv2(x)
        y = y + self.used_again(y)
        return self.head(self.after_tanh(self.tanh(y)).mean((2, 3)))


def deep() -> nn.Module:
    layers: list[nn.Module] = [nn.Linear(6, 8)]
    for _ in range(5):
        layers += [nn.LeakyReLU(0.1, inplace=True), nn.BatchNorm1d(8), nn.Linear(8, 8)]
    return nn.Sequential(*layers, nn.Linear(8, 4))


def convolutional() -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(3, 4, 3, bias=False)]
    for _ in range(3):
        layers += [nn.BatchNorm2d(4), nn.LeakyReLU(0.1), nn.Conv2d(4, 4, 3, padding=1, bias=False)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(64, 5))


ALL = {
    **CASES,
    "ResNet with batch norm": Case(lambda: [ResNet(is_frozen=False)], classify_images),
    "activations": Case(lambda: [Activations()], classify_images),
    "activations in place in a row": Case(lambda: [deep()], classify),
    "convolutions in a row": Case(lambda: [convolutional()], classify_images),
}

REQUESTS: dict[str, list[tuple[str, Mapping[str, str]]]] = {
    "checkpointing": [("checkpointing", {})],
    "checkpointing of one block": [("checkpointing", {"blocks": "1"})],
    "checkpointing that keeps products": [("checkpointing", {"keep": "matmuls"})],
    "activations in place": [("inplace-activations", {})],
    "both": [("checkpointing", {}), ("inplace-activations", {})],
    "channels last": [("channels-last", {})],
    "gradients to none": [("early-zero-grad", {}), ("drop-gradients", {})],
    "for-loop": [("optimizer-form", {"form": "for-loop"})],
    "fused": [("optimizer-form", {"form": "fused"})],
    "no graph in evaluation": [("no-grad-evaluation", {}), ("empty-cache", {})],
}


@pytest.fixture(autouse=True)
def every_test_in_float64() -> Iterator[None]:
    with in_float64():
        yield


def compared(requests: list[tuple[str, Mapping[str, str]]], expected: dict[str, Any]) -> list[Any]:
    """Train every model with tricks, in a copy of this process; what each trick did."""

    def train() -> list[str | None]:
        started = tricks.start(torch, requests)
        for each, (steps, result) in expected.items():
            try:
                assert_same(trained(ALL[each], plain, steps), result)
            except BaseException as error:
                raise AssertionError(f"{each}: {error}") from error
        return [account.did for account in started.accounts()]

    did: list[Any] = in_a_copy(train)
    return did


def ends_of(steps: int) -> dict[str, Any]:
    return {
        name: (steps, trained(case, plain, steps)) for name, case in ALL.items() if case.is_possible
    }


@pytest.fixture(scope="module")
def after_three() -> dict[str, Any]:
    # It is made before a test's own fixtures are.
    with in_float64():
        return ends_of(3)


@pytest.fixture(scope="module")
def after_twenty() -> dict[str, Any]:
    with in_float64():
        return ends_of(20)


@pytest.mark.parametrize("name", REQUESTS)
def test_three_steps_end_where_they_would_without_the_trick(
    name: str, after_three: dict[str, Any]
) -> None:
    did = compared(REQUESTS[name], after_three)
    if "evaluation" not in name and "none" not in name:
        assert all(did), did


@pytest.mark.at_length
@pytest.mark.parametrize("name", REQUESTS)
def test_so_do_twenty_steps(name: str, after_twenty: dict[str, Any]) -> None:
    compared(REQUESTS[name], after_twenty)


def test_activations_that_may_not_be_written_over_are_named() -> None:
    def train() -> str | None:
        started = tricks.start(torch, [("inplace-activations", {})])
        trained(ALL["activations"], plain, 1)
        return started.accounts()[0].did

    did = in_a_copy(train)
    assert did.startswith("1 LeakyReLU module in place; left alone: "), did
    assert "used_again (its input is used again)" in did
    assert "of_input (its input belongs to the caller)" in did
    assert "after_tanh (Tanh needs its own result in backward)" in did


def test_a_block_that_writes_over_its_input_is_refused() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.ELU(inplace=True), nn.Linear(6, 6)

        def forward(self, x: Tensor) -> Any:
            return self.second(self.first(x))

    def train() -> str:
        tricks.start(torch, [("checkpointing", {})])
        model = nn.Sequential(nn.Linear(6, 6), Block(), Block())
        try:
            model(torch.ones(2, 6))
        except Exception as error:
            return str(error)
        return "nothing was refused"

    assert "Block writes over its own input" in in_a_copy(train)


def test_blocks_that_the_script_checkpoints_are_not_checkpointed_twice() -> None:
    from torch.utils.checkpoint import checkpoint

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(6, 6)) for _ in range(2))
            self.blocks.extend(Part() for _ in range(2))

        def forward(self, x: Tensor) -> Any:
            for block in self.blocks:
                x = checkpoint(block, x, use_reentrant=False)
            return x

    class Part(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(6, 6)

        def forward(self, x: Tensor) -> Any:
            return self.layer(x)

    def train() -> str | None:
        started = tricks.start(torch, [("checkpointing", {})])
        Model()(torch.ones(2, 6)).sum().backward()
        return started.accounts()[0].did

    assert in_a_copy(train) is None


def test_every_trick_of_these_classes_is_tried_here_or_has_tests_of_its_own() -> None:
    tried = {name for requests in REQUESTS.values() for name, _ in requests}
    elsewhere = {
        # with exact gradients: tests of their own
        *("chunking", "evaluation-chunks", "surviving-oom", "loss-head", "sharding"),
        *("offload-activations", "offload-optimizer", "optimizer-in-backward"),
        # settings of a card, and of loaders that evaluate
        *("allocator", "leave-room", "no-limit", "no-cudnn-benchmark", "small-evaluation-batch"),
    }
    same = {
        name
        for name, trick in catalogue.tricks().items()
        if trick["numerics"] in ("identical", "rounding")
    }
    assert same == tried | elsewhere
