# Modules and gradients are reached by index and name, which torch's types do not know.
# ruff: noqa: E501
# mypy: disable-error-code="arg-type,assignment,attr-defined,index,misc,name-defined,no-any-return,no-untyped-call,operator,union-attr"
"""Cross-entropy of logits that are there, without copies of them, is cross-entropy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Callable

import pytest
from conftest import Rehearse

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402

from ghostgpu.tricks import cross_entropy_in_pieces  # noqa: E402
from ghostgpu.tricks.accumulation_weights import MEAN, SUM, reduction_of  # noqa: E402
from ghostgpu.tricks.cross_entropy_in_pieces import replacement  # noqa: E402
from ghostgpu.tricks.refusal import Refused  # noqa: E402

PLAIN = F.cross_entropy
CLASSES = 11


class Counted:
    """The replacement, and how many calls it did not hand on."""

    def __init__(self, pieces: int = 3) -> None:
        self.taken = 0
        self.call = replacement(PLAIN, pieces, self._note)

    def _note(self) -> None:
        self.taken += 1


@pytest.fixture(autouse=True)
def small_logits_are_large(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(cross_entropy_in_pieces, "LARGE", 1)
    torch.manual_seed(0)
    yield


def logits_of(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(*shape, dtype=dtype, requires_grad=True)


def labels_of(*shape: int, ignored: int = -100) -> torch.Tensor:
    labels = torch.randint(0, CLASSES, shape)
    return labels.masked_fill(torch.rand(shape) < 0.3, ignored)


def assert_same(logits: torch.Tensor, labels: torch.Tensor, *rest: Any, **options: Any) -> int:
    """The same loss and gradients; returns how many calls were not handed on."""
    counted = Counted()
    found, expected = (each(logits, labels, *rest, **options) for each in (counted.call, PLAIN))
    torch.testing.assert_close(found, expected, rtol=1e-13, atol=0, equal_nan=True)
    gradients = [torch.autograd.grad((each * 3).sum(), logits)[0] for each in (found, expected)]
    torch.testing.assert_close(*gradients, rtol=1e-12, atol=1e-15)
    assert gradients[0].stride() == gradients[1].stride()
    return counted.taken


@pytest.mark.parametrize("pieces", [1, 2, 3, 100])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("further", [(), (5,), (2, 3)])
@pytest.mark.parametrize("ignored", [-100, 4])
def test_losses_and_gradients_are_those_of_pytorch(
    pieces: int, reduction: str, further: tuple[int, ...], ignored: int
) -> None:
    logits = logits_of(7, CLASSES, *further)
    labels = labels_of(7, *further, ignored=ignored)
    assert assert_same(logits, labels, ignore_index=ignored, reduction=reduction) == 1


def test_the_order_of_dimensions_in_memory_stays() -> None:
    logits = logits_of(4, 6, CLASSES)
    counted = Counted()
    counted.call(logits.transpose(1, 2), labels_of(4, 6)).backward()
    assert counted.taken == 1 and logits.grad.is_contiguous()


def test_options_may_be_given_by_place() -> None:
    assert assert_same(logits_of(7, CLASSES), labels_of(7, ignored=4), None, None, 4, None, "sum")


def test_infinite_logits_and_labels_that_are_all_ignored_give_what_they_give() -> None:
    logits = logits_of(7, CLASSES)
    with torch.no_grad():
        logits[:, 3] = -torch.inf
    labels = labels_of(7)
    assert assert_same(logits, labels.masked_fill(labels == 3, -100)) == 1
    ignored = torch.full((7,), -100)
    assert assert_same(logits, ignored) == 1
    assert assert_same(logits, ignored, reduction="sum") == 1


HANDED_ON: dict[str, dict[str, Any]] = {
    "weights of classes": {"weight": torch.rand(CLASSES, dtype=torch.float64)},
    "label smoothing": {"label_smoothing": 0.1},
    "no reduction": {"reduction": "none"},
    "an old word for the sum": {"size_average": False},
    "an old word for none": {"reduce": False},
}


@pytest.mark.parametrize("name", HANDED_ON)
@pytest.mark.filterwarnings("ignore:.*size_average and reduce args will be deprecated")
def test_other_losses_are_those_of_pytorch(name: str) -> None:
    assert assert_same(logits_of(7, CLASSES), labels_of(7), **HANDED_ON[name]) == 0


def test_probabilities_of_classes_and_single_samples_are_handed_on() -> None:
    probabilities = torch.rand(7, CLASSES, dtype=torch.float64).softmax(1)
    assert assert_same(logits_of(7, CLASSES), probabilities) == 0
    assert assert_same(logits_of(CLASSES), torch.tensor(3)) == 0


def test_small_logits_and_evaluation_are_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    logits, labels, counted = logits_of(7, CLASSES), labels_of(7), Counted()
    with torch.no_grad():
        counted.call(logits, labels)
    counted.call(logits.detach(), labels)
    monkeypatch.setattr(cross_entropy_in_pieces, "LARGE", 8 * 7 * CLASSES + 1)
    counted.call(logits, labels)
    assert counted.taken == 0


class Marked(torch.Tensor):
    """A tensor that has its own way with functions."""


def test_tensors_of_other_kinds_are_handed_on() -> None:
    counted = Counted()
    loss = counted.call(logits_of(7, CLASSES).as_subclass(Marked), labels_of(7))
    assert type(loss) is Marked and counted.taken == 0


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
def test_deterministic_programs_and_function_transforms_are_handed_on() -> None:
    logits, labels, counted = logits_of(7, CLASSES).detach(), labels_of(7), Counted()

    def loss(each: torch.Tensor) -> torch.Tensor:
        return counted.call(each, labels)

    expected = torch.func.grad(lambda each: PLAIN(each, labels))(logits)
    assert torch.equal(torch.func.grad(loss)(logits), expected)
    with torch.autograd.forward_ad.dual_level():
        loss(torch.autograd.forward_ad.make_dual(logits, torch.ones_like(logits)))
    torch.use_deterministic_algorithms(True)
    try:
        loss(logits.requires_grad_())
    finally:
        torch.use_deterministic_algorithms(False)
    assert counted.taken == 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("autocast", [False, True])
def test_half_precision_is_as_exact_as_in_pytorch(dtype: torch.dtype, autocast: bool) -> None:
    logits, labels, counted = logits_of(64, CLASSES, dtype=dtype), labels_of(64), Counted()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        found, expected = counted.call(logits, labels), PLAIN(logits, labels)
    assert counted.taken == 1
    assert found.dtype == expected.dtype
    torch.testing.assert_close(found, expected)
    exact = logits.detach().double().requires_grad_()
    (right,) = torch.autograd.grad(PLAIN(exact, labels), exact)
    ours, theirs = (
        (torch.autograd.grad(each, logits)[0].double() - right).abs().max()
        for each in (found, expected)
    )
    assert ours <= 1.1 * theirs + 1e-7


def test_a_graph_that_is_kept_can_be_gone_through_again() -> None:
    logits, labels = logits_of(7, CLASSES), labels_of(7)
    loss = Counted().call(logits, labels)
    once, again = (torch.autograd.grad(loss, logits, retain_graph=True)[0] for _ in range(2))
    assert torch.equal(once, again)


def test_gradients_of_gradients_are_refused() -> None:
    logits = logits_of(7, CLASSES)
    with pytest.raises(Refused, match="create_graph"):
        torch.autograd.grad(Counted().call(logits, labels_of(7)), logits, create_graph=True)


def test_logits_that_are_written_over_are_refused() -> None:
    logits = logits_of(7, CLASSES) * 1
    loss = Counted().call(logits, labels_of(7))
    logits.zero_()
    with pytest.raises(Refused, match="writes over logits"):
        loss.backward()


def test_a_second_backward_pass_fails_as_it_always_does() -> None:
    loss = Counted().call(logits_of(7, CLASSES), labels_of(7))
    loss.backward()
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()


def test_labels_that_are_no_classes_are_errors() -> None:
    for wrong in (CLASSES, -1):
        with pytest.raises((IndexError, RuntimeError)):
            Counted().call(logits_of(7, CLASSES), torch.full((7,), wrong))


def test_whoever_accumulates_it_learns_what_it_was_divided_by() -> None:
    labels = labels_of(7, 5)
    call: Callable[..., Any] = Counted().call
    mean = reduction_of(call(logits_of(7, CLASSES, 5), labels) / 2, 2)
    assert (mean.kind, int(mean.count), mean.targets) == (MEAN, int((labels >= 0).sum()), 35)
    assert reduction_of(call(logits_of(7, CLASSES, 5), labels, reduction="sum")).kind == SUM


SCRIPT = """
import torch
from torch import nn
model = nn.Linear(64, 20000).cuda()
words, labels = torch.randn(16384, 64).cuda(), torch.zeros(16384, dtype=torch.long).cuda()
with torch.autocast("cuda", dtype=torch.bfloat16, enabled=AUTOCAST):
    loss = nn.CrossEntropyLoss()(model(words), labels)
loss.backward()
with open("peak", "w") as file:
    file.write(str(torch.cuda.max_memory_allocated()))
"""


@pytest.mark.parametrize(("autocast", "before", "after"), [(False, 3, 2), (True, 5, 2)])
def test_only_logits_and_their_gradient_are_there(
    autocast: bool, before: int, after: int, rehearse_on_card: Rehearse
) -> None:
    """How many times as large as the logits what is in memory is, at most."""
    script = SCRIPT.replace("AUTOCAST", str(autocast))

    def peak(tricks: list[dict[str, Any]]) -> float:
        done = rehearse_on_card(script, tricks=tricks, steps=0)
        path = done.run_dir.parent / "peak"
        assert path.exists(), f"{done.stdout}\n{done.stderr}"
        return int(path.read_text()) / (16384 * 20000 * (2 if autocast else 4))

    piece = (2 if autocast else 1) / 8
    others = 0.2  # weights, their gradients, workspaces
    assert peak([]) >= before
    least = peak([{"name": "loss-head", "options": {"chunks": "8"}}])
    assert least <= after + 2 * piece + others
