# Modules and gradients are reached by index and name, which torch's types do not know.
# ruff: noqa: E501
# mypy: disable-error-code="arg-type,assignment,attr-defined,call-overload,index,misc,name-defined,no-any-return,no-untyped-call,operator,union-attr,untyped-decorator"
"""What scripts do between backward, step and evaluation: a trick is exact for it, or refuses it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Callable

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from in_a_copy import in_a_copy  # noqa: E402
from torch import nn  # noqa: E402
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


class OfAllGradients(torch.optim.SGD):
    """Divides by the norm of all gradients."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        parameters = [each for group in self.param_groups for each in group["params"]]
        norm = torch.stack([each.grad.norm() for each in parameters]).norm()
        for each in parameters:
            each.sub_(each.grad / norm, alpha=self.param_groups[0]["lr"])


def steps(
    between: Callable[[int, Any, Any], object] = lambda at, model, optimizer: None,
    after: Callable[[int, Any, Any], object] = lambda at, model, optimizer: None,
    *,
    zeroes: bool = True,
    kind: Any = torch.optim.SGD,
) -> list[torch.Tensor]:
    """`between`: what the script does between backward and step; `after`: after the step."""
    model = mlp()
    optimizer = kind(model.parameters(), lr=0.05)
    for at in range(8):
        if zeroes:
            optimizer.zero_grad()
        F.cross_entropy(model(numbers(at, SAMPLES, 6)), classes(at, 4, SAMPLES)).backward()
        between(at, model, optimizer)
        optimizer.step()
        after(at, model, optimizer)
    return [each.detach() for each in model.parameters()]


def evaluate(at: int, model: Any, optimizer: Any) -> None:
    if at % 3 == 2:
        model.eval()
        model(numbers(at + 100, SAMPLES, 6))
        model.train()


def evaluated_after_steps() -> list[torch.Tensor]:
    return steps(after=evaluate)


def evaluated_between_backward_and_step() -> list[torch.Tensor]:
    return steps(between=evaluate)


def gradients_that_are_never_zeroed() -> list[torch.Tensor]:
    return steps(after=evaluate, zeroes=False)


def gradients_that_are_zeroed_by_hand() -> list[torch.Tensor]:
    def drop(at: int, model: Any, optimizer: Any) -> None:
        for each in model.parameters():
            each.grad = None
        evaluate(at, model, optimizer)

    return steps(after=drop, zeroes=False)


def windows_of_the_script_with_evaluation_inside() -> list[torch.Tensor]:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for at in range(8):
        F.cross_entropy(model(numbers(at, SAMPLES, 6)), classes(at, 4, SAMPLES)).backward()
        evaluate(at, model, optimizer)
        if at % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()
    return [each.detach() for each in model.parameters()]


def gradients_clipped_by_hand() -> list[torch.Tensor]:
    def clip(at: int, model: Any, optimizer: Any) -> None:
        for each in model.parameters():
            if each.grad is not None:
                each.grad.clamp_(-0.01, 0.01)

    return steps(between=clip)


def rate_set_before_the_step() -> list[torch.Tensor]:
    def warm_up(at: int, model: Any, optimizer: Any) -> None:
        optimizer.param_groups[0]["lr"] = 0.01 * (at + 1)

    return steps(between=warm_up)


def optimizer_of_all_gradients() -> list[torch.Tensor]:
    return steps(kind=OfAllGradients)


def loss_of_a_frozen_network() -> list[torch.Tensor]:
    generator, frozen = mlp(6, 6), mlp(6, 5).eval().requires_grad_(False)

    optimizer = torch.optim.SGD(generator.parameters(), lr=0.05)
    for at in range(4):
        optimizer.zero_grad()
        x = numbers(at, SAMPLES, 6)
        made = generator(x)
        (F.l1_loss(made, x) + F.mse_loss(frozen(made), frozen(x))).backward()
        optimizer.step()
    return [each.detach() for each in generator.parameters()]


def training_in_eval() -> list[torch.Tensor]:
    encoder, head = mlp().eval(), nn.Linear(4, 3)
    optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.05)
    for at in range(4):
        optimizer.zero_grad()
        out = head(encoder(numbers(at, SAMPLES, 6)))
        F.cross_entropy(out, classes(at, 3, SAMPLES)).backward()
        optimizer.step()
    return [each.detach() for each in encoder.parameters()]


TRICKS: list[tuple[str, Loop, str | None]] = [
    ("no-grad-evaluation", loss_of_a_frozen_network, None),
    ("no-grad-evaluation", evaluated_between_backward_and_step, None),
    ("no-grad-evaluation", training_in_eval, "trains Sequential while it is in eval"),
    ("drop-gradients", evaluated_after_steps, None),
    ("drop-gradients", evaluated_between_backward_and_step, None),
    ("drop-gradients", windows_of_the_script_with_evaluation_inside, None),
    ("drop-gradients", gradients_that_are_zeroed_by_hand, None),
    ("drop-gradients", gradients_that_are_never_zeroed, "keeps gradients of SGD over a step"),
    ("optimizer-in-backward", evaluated_after_steps, None),
    ("optimizer-in-backward", gradients_that_are_zeroed_by_hand, None),
    ("optimizer-in-backward", gradients_that_are_never_zeroed, "does not zero gradients"),
    ("optimizer-in-backward", gradients_clipped_by_hand, "looks at gradients"),
    ("optimizer-in-backward", rate_set_before_the_step, "changes lr between backward and step"),
    ("optimizer-in-backward", optimizer_of_all_gradients, "not one of PyTorch's optimizers"),
    ("offload-optimizer", rate_set_before_the_step, None),
    ("offload-optimizer", optimizer_of_all_gradients, "not one of PyTorch's optimizers"),
]


@pytest.mark.parametrize(
    ("trick", "loop", "reason"), TRICKS, ids=lambda each: getattr(each, "__name__", None)
)
def test_a_trick_is_exact_or_refused_by_name(trick: str, loop: Loop, reason: str | None) -> None:
    torch.manual_seed(0)
    expected = loop()

    def run() -> Any:
        tricks.start(torch, [(trick, {})])
        torch.manual_seed(0)
        try:
            return [each.numpy() for each in loop()]
        except Refused as refused:
            return refused.reason

    found = in_a_copy(run)
    if reason is not None:
        assert isinstance(found, str) and reason in found, found
        return
    assert not isinstance(found, str), found
    for one, other in zip(found, expected):
        torch.testing.assert_close(torch.as_tensor(one), other, rtol=0, atol=1e-14)
