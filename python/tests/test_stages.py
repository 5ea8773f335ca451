"""The stage and the user's line are told from the stack."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import needs_torch

from ghostgpu.agent import stacks, stages

pytestmark = needs_torch


class Probe:
    """Captures the stage at the moment it is called, wherever that is."""

    def __init__(self) -> None:
        self.stage = ""
        self.stack: list[stacks.Frame] = []

    def __call__(self, *_: Any, steps: int = 0) -> None:
        import torch

        frames = stacks.current_frames()
        self.stage = stages.stage_of(frames, torch, steps)
        self.stack = stacks.describe(frames)


@pytest.fixture
def probe() -> Probe:
    return Probe()


def module_calling(probe: Probe) -> Any:
    import torch

    class Layer(torch.nn.Linear):
        def forward(self, value: Any) -> Any:
            probe()
            return super().forward(value)

    return Layer(2, 2)


def test_inside_a_module_call_it_is_forward(probe: Probe) -> None:
    import torch

    module_calling(probe)(torch.ones(2))
    assert probe.stage == "forward"


def test_without_gradients_it_is_evaluation(probe: Probe) -> None:
    import torch

    with torch.no_grad():
        module_calling(probe)(torch.ones(2))
    assert probe.stage == "evaluation"


def test_a_hook_of_the_autograd_engine_is_backward(probe: Probe) -> None:
    import torch

    value: Any = torch.ones(2, requires_grad=True)
    value.register_hook(probe)
    value.sum().backward()
    assert probe.stage == "backward"


def test_a_forward_that_is_recomputed_for_backward_is_backward(probe: Probe) -> None:
    import torch
    from torch.utils.checkpoint import checkpoint

    result = checkpoint(module_calling(probe), torch.ones(2), use_reentrant=False)
    assert probe.stage == "forward"
    result.sum().backward()
    assert probe.stage == "backward"


def test_a_function_of_its_own_is_evaluation_only_if_the_model_evaluates(probe: Probe) -> None:
    import torch
    from torch.utils.checkpoint import checkpoint

    value = torch.ones(2, requires_grad=True)
    layer = module_calling(probe)
    checkpoint(layer, value, use_reentrant=True)
    assert probe.stage == "forward"
    layer.eval()
    checkpoint(layer, value, use_reentrant=True)
    assert probe.stage == "evaluation"


def test_an_optimizer_step_is_told_from_its_constructor(probe: Probe) -> None:
    import torch

    class Optimizer(torch.optim.Optimizer):
        def step(self, closure: Any = None) -> None:  # type: ignore[override]
            probe()

    Optimizer([torch.nn.Parameter(torch.ones(2))], {}).step()
    assert probe.stage == "optimizer step"


def test_a_forward_in_a_closure_of_the_optimizer_is_forward(probe: Probe) -> None:
    import torch

    layer = module_calling(probe)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    optimizer.step(lambda: float(layer(torch.ones(2)).sum().detach()))
    assert probe.stage == "forward"


def test_moving_a_module_is_told(probe: Probe) -> None:
    import torch

    class Moved(torch.nn.Module):
        def _apply(self, function: Any, recurse: bool = True) -> Any:
            probe()
            return self

    torch.nn.Sequential(Moved()).to(torch.float64)
    assert probe.stage == "moving the model"


def test_before_any_forward_it_is_setup_and_after_one_it_is_forward(probe: Probe) -> None:
    import torch

    probe()
    assert probe.stage == "setup"
    logits = torch.ones(2, requires_grad=True) * 2
    probe()
    assert probe.stage == "forward"
    assert logits.grad_fn is not None


def test_frames_of_packages_and_python_are_not_the_users(probe: Probe) -> None:
    import torch

    module_calling(probe)(torch.ones(2))
    by_file = {Path(frame.file).name: frame for frame in probe.stack}
    assert by_file["module.py"].is_user_code is False
    forward = probe.stack[-2]
    assert (forward.file, forward.is_user_code, forward.source) == (__file__, True, "probe()")
    assert stacks.is_user_code(threading.__file__) is False
    assert stacks.is_user_code("<frozen runpy>") is False
    assert stacks.is_user_code(stacks.__file__) is False


def test_the_users_line_is_the_innermost_of_theirs() -> None:
    here = sys._getframe()
    assert stacks.users_line() == f"test_stages.py:{here.f_lineno}"
