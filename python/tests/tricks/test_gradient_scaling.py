"""Losses of float16 are scaled and gradients unscaled, in loops that know nothing of it."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from in_a_copy import in_a_copy  # noqa: E402
from torch import nn  # noqa: E402

from ghostgpu.tricks.gradient_scaling import GradientScaling  # noqa: E402
from ghostgpu.tricks.hooks import Hooks  # noqa: E402
from ghostgpu.tricks.trick import Trick  # noqa: E402


def scaling() -> GradientScaling:
    hooks = Hooks(torch)
    made = GradientScaling(torch, Trick(torch, hooks, {}), lambda: True)
    made.install()
    hooks.install()
    return made


def models() -> tuple[Any, Any, Any, Any]:
    torch.manual_seed(0)
    one, other = nn.Linear(4, 4), nn.Linear(4, 4)
    return (
        *(one, other),
        torch.optim.SGD(one.parameters(), lr=0.1),
        torch.optim.SGD([*other.parameters()], lr=0.1, momentum=0.9),
    )


def train() -> list[Any]:
    """Two optimizers, accumulation, a gradient that is given, and clipping in between."""
    one, other, first, second = models()
    seen: list[Any] = []
    for _ in range(3):
        first.zero_grad()
        second.zero_grad()
        x = one(torch.ones(2, 4))
        x.square().mean().backward(retain_graph=True)
        other(x.detach()).backward(torch.full((2, 4), 0.25))
        torch.autograd.backward([other(x).sum()])
        for model in (one, other):
            norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            seen += [float(norm), *(each.grad.tolist() for each in model.parameters())]
        first.step()
        second.step()
    return [*seen, *(each.tolist() for each in [*one.parameters(), *other.parameters()])]


def test_everything_that_a_script_sees_is_as_without_scaling() -> None:
    expected = train()

    def scaled() -> tuple[list[Any], int, int]:
        made = scaling()
        return train(), made.scaled_passes, made.left_out_steps

    # Powers of two lose nothing.
    assert in_a_copy(scaled) == (expected, 9, 0)


def test_gradients_that_float16_would_lose_are_kept() -> None:
    def smallest() -> tuple[float, bool]:
        made = scaling()
        weight = torch.ones(1, requires_grad=True)
        optimizer = torch.optim.SGD([weight], lr=1.0)
        # In float16 from the loss on down to the weight, as under autocast.
        (weight.half() * 2.0**-20).float().mul(2.0**-6).sum().backward()
        assert optimizer.param_groups and weight.grad is not None and made.scaled_passes == 1
        return float(weight.grad), weight.grad.dtype == torch.float32

    value, is_float32 = in_a_copy(smallest)
    assert is_float32
    assert value == pytest.approx(2.0**-26, rel=0.5)


def test_gradients_of_what_a_model_is_given_are_unscaled_too() -> None:
    def attacked() -> list[float]:
        made = scaling()
        image = torch.ones(2, requires_grad=True)
        seen = []
        for _ in range(2):
            made.note_input(image * 2 + 1)
            (image * 3).sum().backward()
            assert image.grad is not None
            seen += image.grad.tolist()
        return seen

    assert in_a_copy(attacked) == [3.0, 3.0, 6.0, 6.0]


def test_a_step_with_overflow_is_left_out_and_the_next_ones_use_a_smaller_scale() -> None:
    def overflowing() -> tuple[float, int, list[float]]:
        made = scaling()
        weight = torch.ones(1, requires_grad=True)
        optimizer = torch.optim.SGD([weight], lr=1.0)
        scales = []
        for factor in (float("inf"), 1.0):
            optimizer.zero_grad()
            (weight * factor).sum().backward()
            optimizer.step()
            scales.append(made._scale)
        return float(weight.detach()), made.left_out_steps, scales

    assert in_a_copy(overflowing) == (0.0, 1, [32768.0, 32768.0])


def test_a_step_with_a_closure_and_weights_in_float16_are_refused() -> None:
    def refused() -> list[str]:
        scaling()
        said = []
        weight = torch.ones(1, requires_grad=True)
        optimizer = torch.optim.LBFGS([weight])
        weight.sum().backward()
        half = torch.ones(1, dtype=torch.float16, requires_grad=True)
        for attempt in (
            lambda: optimizer.step(lambda: weight.sum()),
            lambda: (torch.optim.SGD([half], lr=1.0), half.sum().backward()),
        ):
            try:
                attempt()
            except Exception as error:
                said.append(str(error))
        return said

    closure, half = in_a_copy(refused)
    assert "LBFGS calls a closure" in closure
    assert "needs float32 weights" in half
