# Modules and gradients are reached by index and name, which torch's types do not know.
# ruff: noqa: E501
# mypy: disable-error-code="arg-type,assignment,attr-defined,index,misc,name-defined,no-any-return,no-untyped-call,operator,union-attr"
"""Tricks in unmodified loops, installed as `ghostgpu launch` does it, have the plain numbers."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from in_a_copy import in_a_copy  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402
from training_cases import CASES, assert_same, in_float64, mlp, numbers, plain, trained  # noqa: E402

import ghostgpu  # noqa: E402
from ghostgpu import tricks  # noqa: E402


@pytest.fixture(autouse=True)
def every_test_in_float64() -> Iterator[None]:
    with in_float64():
        yield


REQUESTS: dict[str, list[tuple[str, dict[str, str]]]] = {
    "chunks": [("chunking", {"chunks": "3"})],
    "chunks of checkpointed blocks": [("chunking", {"chunks": "2"}), ("checkpointing", {})],
    "surviving": [("surviving-oom", {})],
    "state on the host": [("offload-optimizer", {})],
    "activations on the host": [("offload-activations", {"threshold": "1B"})],
}


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("case", ["ResNet with frozen batch norm", "GAN", "GPT-2 with padding"])
def test_an_unmodified_loop_has_the_numbers_of_a_plain_one(case: str, name: str) -> None:
    if not CASES[case].is_possible:
        pytest.skip(f"{CASES[case].needs} is not installed")
    expected = trained(CASES[case], plain, 2)

    def work() -> str | None:
        started = tricks.start(torch, REQUESTS[name])
        assert_same(trained(CASES[case], plain, 2), expected)
        return started.accounts()[-1].did

    did = in_a_copy(work)
    if "chunk" in name:
        assert did is not None and "chunks" in did


def test_checkpointed_blocks_are_computed_again_for_each_chunk() -> None:
    def work() -> int:
        passes: list[int] = []
        tricks.start(torch, [("chunking", {"chunks": "2"}), ("checkpointing", {})])
        case = CASES["ResNet with frozen batch norm"]
        (model,) = case.make()
        original = type(model.blocks[0]).forward

        def forward(block: Any, x: torch.Tensor) -> torch.Tensor:
            passes.append(len(x))
            return original(block, x)

        type(model.blocks[0]).forward = forward
        case.step(plain, [model], 0)  # begins with a trial
        passes.clear()
        case.step(plain, [model], 1)
        # There are three for a chunk: the first, its repetition with a graph, and what
        # checkpointing repeats of that. The graph of the last one is kept, and not repeated.
        return len(passes)

    assert in_a_copy(work) == 2 * (3 + 2)


def test_a_model_with_batch_norm_ends_with_the_reason() -> None:
    def work() -> str:
        from ghostgpu.tricks.refusal import Refused

        tricks.start(torch, [("chunking", {"chunks": "2"})])
        try:
            torch.nn.Sequential(torch.nn.BatchNorm1d(6))(numbers(0, 5, 6))
        except Refused as refused:
            return refused.reason
        return ""

    assert "BatchNorm1d in training mode" in in_a_copy(work)


def loop(batch: int, clips: bool) -> list[Any]:
    """A script's loop: clipping, a schedule for each batch and one for each epoch."""
    torch.manual_seed(0)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    data = TensorDataset(numbers(0, 22, 6), torch.arange(22).remainder(4))
    rates = []
    for _ in range(2):
        for x, y in DataLoader(data, batch_size=batch):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            if clips:
                torch.nn.utils.clip_grad_norm_(model.parameters(), 0.05)
            optimizer.step()
            schedule.step()
        rates.append(schedule.get_last_lr()[0])
    return [*(each.detach().numpy() for each in model.parameters()), rates]


@pytest.mark.parametrize("clips", [False, True])
def test_accumulated_batches_are_the_large_batch(clips: bool) -> None:
    # Batches of 4, of which the last has 2; windows of 2, of which the last is a batch of 2 and
    # one of 4: as batches of 8 and a last one of 6.
    expected = loop(8, clips)

    def work() -> list[Any]:
        tricks.start(torch, [("accumulation", {"steps": "2"})])
        return loop(4, clips)

    for one, other in zip(in_a_copy(work), expected):
        assert torch.allclose(torch.as_tensor(one), torch.as_tensor(other), rtol=1e-11)


def test_an_optimizer_that_steps_in_backward_leads_to_the_same_parameters() -> None:
    expected = loop(8, False)

    def work() -> list[Any]:
        tricks.start(torch, [("optimizer-in-backward", {})])
        return loop(8, False)

    for one, other in zip(in_a_copy(work), expected):
        assert torch.allclose(torch.as_tensor(one), torch.as_tensor(other), rtol=1e-12)


def test_clipping_is_refused_where_gradients_are_gone() -> None:
    def work() -> str:
        tricks.start(torch, [("optimizer-in-backward", {})])
        try:
            loop(8, True)
        except Exception as error:
            return str(error)
        return ""

    assert "clip_grad_norm_ needs all gradients" in in_a_copy(work)


def ranks(folder: Path, ways: str) -> list[Any]:
    """Gradients on two ranks under DDP, each with a batch of its own, and how often they met."""
    work = [functools.partial(_rank, rank, folder / ways, ways) for rank in range(2)]
    with ThreadPoolExecutor(2) as both:
        return list(both.map(in_a_copy, work))


def _rank(rank: int, meeting: Path, ways: str) -> Any:
    import torch.distributed as distributed
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
    from torch.nn.parallel import DistributedDataParallel

    distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
    torch.manual_seed(0)
    model = DistributedDataParallel(mlp())
    reductions: list[int] = []

    def reduce(group: Any, bucket: Any) -> Any:
        reductions.append(1)
        return default_hooks.allreduce_hook(group, bucket)

    reduce.__annotations__.clear()  # DDP takes its own types or none
    model.register_comm_hook(distributed.group.WORLD, reduce)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = numbers(rank, 7 + rank, 6), torch.arange(7 + rank).remainder(4)
    if ways == "accumulated":
        for rows in (slice(0, 3), slice(3, 9)):
            with ghostgpu.accumulate(model, optimizer, 2) as window:
                window.backward(F.cross_entropy(model(x[rows]), y[rows]), count=len(y[rows]))
    else:
        if ways == "chunks":
            ghostgpu.fit(model, optimizer, chunks=3)
        elif ways == "surviving":
            ghostgpu.fit(model, optimizer, survive_oom=True)
        for _ in range(2):
            # The mean over the samples of all ranks, as DDP averages.
            loss = F.cross_entropy(model(x), y, reduction="sum") * 2 / 15
            optimizer.zero_grad()
            loss.backward()
            if ways == "one":
                break
            reductions[:-1] = []
        optimizer.step() if ways == "one" else None
    values = [
        each.detach().numpy() if ways in ("accumulated", "one") else each.grad.numpy()
        for each in model.parameters()
    ]
    return values, len(reductions)


@pytest.mark.parametrize(
    ("ways", "plainly"), [("chunks", "plain"), ("surviving", "plain"), ("accumulated", "one")]
)
def test_under_ddp_gradients_are_reduced_once_and_right(
    ways: str, plainly: str, tmp_path: Path
) -> None:
    expected = ranks(tmp_path, plainly)
    for (found, reductions), (right, _) in zip(ranks(tmp_path, ways), expected):
        assert reductions == 1
        for one, other in zip(found, right):
            assert torch.allclose(torch.as_tensor(one), torch.as_tensor(other), rtol=1e-11)
