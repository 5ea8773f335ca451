# ruff: noqa: E501
# mypy: disable-error-code="assignment,attr-defined,misc,name-defined,no-any-return,no-untyped-call,operator"
"""Whole loops in which memory runs out again and again have the numbers of those without.

Two models with two optimizers, a gradient scaler, clipping and schedules, as scripts write them;
calls fail in forward and in backward, at most once for each model in a step.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator
from typing import Any, Callable

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from in_a_copy import in_a_copy  # noqa: E402
from torch import nn  # noqa: E402
from training_cases import SAMPLES, in_float64, numbers  # noqa: E402

from ghostgpu import tricks  # noqa: E402
from ghostgpu.tricks.surviving_oom_errors import out_of_memory_error  # noqa: E402

STEPS = 40


@pytest.fixture(autouse=True)
def every_test_in_float64() -> Iterator[None]:
    with in_float64():
        yield


class Fuse:
    """Lets one pass in a step fail, forward or backward, in every second step."""

    def __init__(self, seed: int) -> None:
        self._drawn = random.Random(seed)
        self._where = ""
        self.is_armed = False
        self.failures = {"forward": 0, "backward": 0}

    def new_step(self) -> None:
        self._where = self._drawn.choice(("", "", "forward", "backward")) if self.is_armed else ""

    def may_blow(self, where: str) -> None:
        if self._where == where and self._drawn.random() < 0.3:
            self._where = ""
            self.failures[where] += 1
            raise out_of_memory_error(torch)("CUDA out of memory. Tried to allocate 2.00 MiB.")


class FailingPass(torch.autograd.Function):
    """Passes everything on, unless the fuse blows."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, fuse: Fuse) -> torch.Tensor:
        ctx.fuse = fuse
        fuse.may_blow("forward")
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        ctx.fuse.may_blow("backward")
        return gradient, None


class Fragile(nn.Module):
    def __init__(self, fuse: Fuse, *widths: int) -> None:
        super().__init__()
        self._fuse = fuse
        layers = [nn.Linear(*each) for each in zip(widths, widths[1:])]
        self.layers = nn.ModuleList(layers)
        self.register_buffer("passes", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.passes += 1
        for layer in self.layers:
            x = torch.tanh(FailingPass.apply(layer(x), self._fuse))
        return x


Loop = Callable[[list[Fuse], Callable[[], None]], list[Any]]


def gan(fuses: list[Fuse], after_step: Callable[[], None]) -> list[Any]:
    """Each optimizer steps with gradients that went through both models."""
    torch.manual_seed(0)
    maker, judge = Fragile(fuses[0], 4, 8, 6), Fragile(fuses[1], 6, 8, 1)
    of_maker = torch.optim.Adam(maker.parameters(), lr=0.01)
    of_judge = torch.optim.SGD(judge.parameters(), lr=0.02, momentum=0.9)
    schedule = torch.optim.lr_scheduler.StepLR(of_judge, 7, 0.5)
    for step in range(STEPS):
        for each in fuses:
            each.new_step()
        noise, real = numbers(step, SAMPLES, 4), numbers(step + 99, SAMPLES, 6)
        of_judge.zero_grad()
        loss = F.softplus(-judge(real)).mean() + F.softplus(judge(maker(noise).detach())).mean()
        loss.backward()
        nn.utils.clip_grad_norm_(judge.parameters(), 0.05)
        of_judge.step()
        of_maker.zero_grad()
        F.softplus(-judge(maker(noise))).mean().backward()
        of_maker.step()
        schedule.step()
        del loss
        after_step()
    parameters = [*maker.parameters(), *judge.parameters()]
    return [*(each.detach() for each in parameters), schedule.get_last_lr(), maker.passes]


def scaled(fuses: list[Fuse], after_step: Callable[[], None]) -> list[Any]:
    """A scaler, clipping of unscaled gradients, two batches for a step, and a schedule."""
    torch.manual_seed(0)
    model = Fragile(fuses[0], 6, 9, 9, 4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.05, total_steps=STEPS + 1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12, growth_interval=6)
    for step in range(STEPS):
        for each in fuses:
            each.new_step()
        optimizer.zero_grad()
        for half in range(2):
            x = numbers(2 * step + half, SAMPLES, 6)
            # Overflows now and then, so that steps are left out.
            factor = float("inf") if step % 11 == 10 and half else 1.0
            loss = F.cross_entropy(model(x), torch.arange(SAMPLES) % 4) * factor
            scaler.scale(loss / 2).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        scaler.step(optimizer)
        scaler.update()
        schedule.step()
        del loss, x
        after_step()
    final = [each.detach() for each in model.parameters()]
    return [*final, schedule.get_last_lr(), scaler.get_scale(), model.passes]


def run(loop: Loop, is_armed: bool) -> tuple[list[Any], list[int], list[dict[str, int]]]:
    fuses = [Fuse(3), Fuse(4)]
    for each in fuses:
        each.is_armed = is_armed
    alive: list[int] = []
    steps = iter(range(STEPS))

    def count() -> None:
        # It takes a while.
        if next(steps) not in (10, STEPS - 1):
            return
        gc.collect()
        alive.append(sum(issubclass(type(each), torch.Tensor) for each in gc.get_objects()))

    found = loop(fuses, count)
    flat = [torch.as_tensor(each).numpy() for each in found]
    return flat, alive, [each.failures for each in fuses]


@pytest.mark.parametrize("loop", [gan, scaled])
def test_a_loop_that_runs_out_of_memory_has_the_numbers_of_one_that_does_not(loop: Loop) -> None:
    expected, _, _ = run(loop, is_armed=False)

    def work() -> Any:
        tricks.start(torch, [("surviving-oom", {})])
        return run(loop, is_armed=True)

    found, (early, late), failures = in_a_copy(work)
    for each in failures[: 2 if loop is gan else 1]:
        assert min(each.values()) >= 2, "it has not failed often enough, both ways"
    for one, other in zip(found, expected):
        assert abs(one - other).max() <= 1e-10 * max(1.0, abs(other).max())
    assert early == late, "something is left behind"
