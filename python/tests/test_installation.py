"""A part of the agent that a new torch breaks is named, and costs no other part."""

from __future__ import annotations

import pytest
from conftest import Rehearse, needs_torch

pytestmark = needs_torch

TRAINING = """
        import torch
        model = torch.nn.Linear(4, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(9):
            optimizer.step()
"""


@pytest.mark.parametrize(
    ("module", "method", "sentence"),
    [
        (
            "peaks",
            "PeakTracker.install",
            "part `peaks` (RuntimeError: other at broken, line 5): peaks",
        ),
        ("oom", "OomObserver.install", "part `out of memory` (RuntimeError: other at broken"),
        ("oom", "OomObserver.__init__", "part `out of memory` (RuntimeError: other at broken"),
        ("training_data", "TrainingDataObserver.__init__", "part `training data` (RuntimeError"),
        (
            "values.known_calls",
            "KnownCalls.install",
            "part `known calls` (RuntimeError: other at broken",
        ),
        (
            "values.data_dependent",
            "ShapeAssumptions.install",
            "part `sizes by value` (RuntimeError: other",
        ),
    ],
)
def test_a_part_that_cannot_be_installed_is_named_and_the_others_work(
    rehearse_on_card: Rehearse, module: str, method: str, sentence: str
) -> None:
    done = rehearse_on_card(
        f"""
        import _ghostgpu.agent.{module}

        def broken(*arguments):
            raise RuntimeError("other")

        _ghostgpu.agent.{module}.{method} = broken
        {TRAINING}
        """,
        breaks_agent=True,
        steps=3,
    )
    (fault,) = done.faults
    assert fault.startswith("GhostGPU's agent could not install its " + sentence)
    assert (done.code, done.report["steps"]) == (0, 3)


def test_an_operator_that_torch_no_longer_has_costs_no_other(rehearse_on_card: Rehearse) -> None:
    done = rehearse_on_card(
        f"""
        import _ghostgpu.agent.values.known_calls as calls

        calls._READ_BY_PYTORCH = ("no_such_operator", *calls._READ_BY_PYTORCH)
        {TRAINING}
        from _ghostgpu.agent import kernels
        print(sorted(kernels._chains))
        """,
        breaks_agent=True,
        steps=0,
    )
    (fault,) = done.faults
    assert fault.startswith(
        "GhostGPU's agent could not install its part `values of no_such_operator` ("
    )
    assert "'max'" in done.stdout


def test_an_agent_that_cannot_start_at_all_is_reported(rehearse_on_card: Rehearse) -> None:
    done = rehearse_on_card(
        f"""
        import _ghostgpu.agent.session

        def broken():
            raise RuntimeError("another format")

        _ghostgpu.agent.session.load = broken
        {TRAINING}
        """,
        breaks_agent=True,
    )
    (fault,) = done.faults
    assert "could not start after the import of torch" in fault
    assert done.code == 0
