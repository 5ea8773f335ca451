"""When enough of a training has been seen; without torch."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

import pytest

from ghostgpu.agent.coverage.evaluation_ahead import reachable_evaluations
from ghostgpu.agent.coverage.extent import BRIEF, THOROUGH, Extent
from ghostgpu.agent.coverage.progress import Progress
from ghostgpu.agent.coverage.undisturbed_clock import UndisturbedClock, delays_of_threads


class Clock:
    """Time that goes by only when told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def _nothing_ahead() -> bool:
    return False


def _without_leisure(seconds: float, clock: Clock, extent: Extent = THOROUGH) -> Progress:
    """With passes that are hurried as soon as nothing new comes."""
    return Progress(seconds, clock, clock, replace(extent, leisure_share=0.0, later_share=0.0))


def _steps_until_enough(progress: Progress, peaks: list[int], end_of_pass: int | None) -> int:
    """Steps with these peaks, the last for ever; a pass ends after every `end_of_pass` of them."""
    for step in range(1, 100):
        progress.has_training_loader = end_of_pass is not None
        progress.note_step(step, (peaks[min(step, len(peaks)) - 1],))
        if progress.is_enough(_nothing_ahead):
            return step
        if end_of_pass is not None and step % end_of_pass == 0:
            progress.note_pass_end()
    return 100


@pytest.mark.parametrize(
    ("peaks", "end_of_pass", "expected"),
    [
        pytest.param([5], 5, 61, id="ten passes after three quiet steps"),
        pytest.param([5, 6, 7, 8], 1, 17, id="ten passes after three steps without a new peak"),
        pytest.param([5] * 11 + [9], 5, 61, id="a peak after the end of the second pass"),
        pytest.param([5] * 30 + [9], 5, 81, id="a peak in a later epoch"),
        pytest.param([5, 6], None, 10, id="eight quiet steps without a loader"),
        pytest.param(list(range(1, 101)), 5, 100, id="never while memory grows"),
    ],
)
def test_a_training_is_ended_when_nothing_new_is_seen(
    peaks: list[int], end_of_pass: int | None, expected: int
) -> None:
    progress = _without_leisure(60, Clock())
    assert _steps_until_enough(progress, peaks, end_of_pass) == expected


@pytest.mark.parametrize(
    ("peaks", "end_of_pass", "expected"),
    [
        pytest.param([5], 3, 4, id="one step after the first pass"),
        pytest.param([5, 5, 5, 6], 3, 5, id="one more where that step has a new peak"),
        pytest.param([5, 6], None, 4, id="two quiet steps without a loader"),
        pytest.param(list(range(1, 101)), 5, 100, id="never while memory grows"),
    ],
)
def test_a_brief_rehearsal_sees_a_later_step_and_one_behind_the_first_pass(
    peaks: list[int], end_of_pass: int | None, expected: int
) -> None:
    progress = _without_leisure(60, Clock(), BRIEF)
    assert _steps_until_enough(progress, peaks, end_of_pass) == expected


@pytest.mark.parametrize(
    ("peaks", "are_alike"),
    [
        pytest.param([5], True, id="nothing new"),
        pytest.param([5] * 30 + [9], False, id="a peak in a later epoch"),
        pytest.param(list(range(1, 101)), False, id="never settled"),
    ],
)
def test_later_epochs_are_alike_if_nothing_new_came_in_any(
    peaks: list[int], are_alike: bool
) -> None:
    progress = _without_leisure(60, Clock())
    _steps_until_enough(progress, peaks, 5)
    assert progress.later_passes_are_alike == are_alike


def test_epochs_that_are_known_to_be_alike_are_left_out() -> None:
    progress = _without_leisure(60, Clock(), THOROUGH.without_later_passes())
    # Two passes, and three steps without anything new.
    assert _steps_until_enough(progress, [5], 5) == 13
    assert progress.later_passes_are_alike


def test_three_steps_are_made_however_long_they_take() -> None:
    clock = Clock()
    progress = _without_leisure(10, clock)
    ended = []
    for step in range(1, 5):
        progress.note_step(step, (step,))
        clock.now += 100
        ended.append(progress.is_enough(_nothing_ahead))
    assert ended == [False, False, True, True]


def test_steps_that_differ_are_watched_longer() -> None:
    def steps_until_enough(allocated: Callable[[int], int]) -> int:
        progress = _without_leisure(60, Clock())
        for step in range(1, 1000):
            progress.note_step(step, (1,), allocated(step))
            if progress.is_enough(_nothing_ahead):
                return step
        return 1000

    assert steps_until_enough(lambda step: 100) == 9
    assert steps_until_enough(lambda step: 100 + step % 2) == 9
    assert steps_until_enough(lambda step: 100 + step * 37 % 11) == 41


def test_an_evaluation_ahead_is_waited_for_in_a_hurry_and_not_for_ever() -> None:
    clock = Clock()
    progress = _without_leisure(60, clock)
    ended_at = None
    for step in range(1, 1000):
        progress.note_step(step, (1,))
        clock.now += 0.1
        if progress.is_enough(lambda: True):
            ended_at = clock.now
            break
        assert progress.is_in_a_hurry == (step >= 9)
    # A third of the budget after nothing new was seen.
    assert ended_at == pytest.approx(0.9 + 20, abs=0.2)


def test_what_is_new_while_in_a_hurry_is_looked_at_with_time() -> None:
    progress = _without_leisure(60, Clock())
    for step in range(1, 12):
        progress.note_step(step, (1,))
        progress.is_enough(lambda: True)
    assert progress.is_in_a_hurry
    progress.note_new("evaluation")
    assert not progress.is_in_a_hurry
    progress.note_new("evaluation")
    for step in range(12, 19):
        progress.note_step(step, (1,))
        assert not progress.is_enough(_nothing_ahead)
    progress.note_step(19, (1,))
    assert progress.is_enough(_nothing_ahead)


SCRIPT = """
import helpers

def evaluate(model):
    model.eval()

def unused(model):
    model.eval()

def main():
    for _ in range(3):
        train()
    evaluate(model)
    frame.eval("a + b")

class Tester:
    def run(self):
        self.model.eval()

main()
helpers.Tester
"""


def test_evaluations_are_ahead_only_where_a_call_leads_to_them() -> None:
    lines = [str(line) for line in reachable_evaluations([("/job/train.py", SCRIPT)])]
    assert lines == ["train.py:5"]
    # A method of that name is called somewhere.
    lines = [
        str(line)
        for line in reachable_evaluations([("/job/train.py", SCRIPT + "\nhelpers.Tester().run()")])
    ]
    assert lines == ["train.py:5", "train.py:18"]


WITHOUT_GRADIENTS = """
import torch
from torch import no_grad
from torch.nn.init import trunc_normal_

class Average:
    @torch.no_grad()
    def update(self, model):
        for own, other in zip(self.values, model.parameters()):
            own.lerp_(other, 0.1)

class Unnamed:
    @torch.no_grad()
    def update(self):
        self.model(x)

class Sharp(torch.optim.Optimizer):
    @torch.no_grad()
    def step(self, closure=None):
        loss = closure()

class Sampler:
    @torch.inference_mode()
    def draw(self):
        return self.model.generate(8)

def initialise(layer):
    with torch.no_grad():
        trunc_normal_(layer.weight)
        layer.bias.zero_()

@no_grad()
def accuracy(loader):
    return sum(model(x) for x in loader)

average, sampler = Average(), Sampler()
for step in range(100):
    Sharp(model.parameters()).step()
    average.update(model)
    if step % 50 == 49:
        with torch.no_grad():
            grid = generator(noise)
        with torch.inference_mode(False):
            model(x)
        sampler.draw()
        accuracy(loader)
initialise(layer)
"""


def test_a_model_called_without_gradients_is_an_evaluation_and_an_average_is_not() -> None:
    lines = [str(line) for line in reachable_evaluations([("train.py", WITHOUT_GRADIENTS)])]
    assert lines == ["train.py:23", "train.py:32", "train.py:41"]


TRIES_ITSELF = """
class Net:
    def forward(self, x):
        return x

if __name__ == "__main__":
    Net().eval()
"""


def test_what_an_imported_module_does_as_a_script_is_not_ahead() -> None:
    sources = [("net.py", TRIES_ITSELF), ("train.py", "import net\nmodel.eval()")]
    lines = [str(line) for line in reachable_evaluations(sources, "train.py")]
    assert lines == ["train.py:2"]
    lines = [str(line) for line in reachable_evaluations(sources, "net.py")]
    assert lines == ["net.py:7", "train.py:2"]


BEFORE_AND_AFTER = """
def build():
    model = Model().eval()

def evaluate():
    model.eval()
    for x in loader:
        model(x)

def once():
    model.eval()
    for x in loader:
        model(x)

build()
build()
once()
evaluate()
train()
evaluate()
"""


def test_what_goes_through_data_at_two_places_may_evaluate_again() -> None:
    lines = reachable_evaluations([("train.py", BEFORE_AND_AFTER)])
    assert {str(line): line.is_repeated for line in lines} == {
        "train.py:3": False,
        "train.py:6": True,
        "train.py:11": False,
    }


@pytest.mark.parametrize("text", ["def broken(:", "\0", "x = (" * 500])
def test_text_that_is_no_python_has_no_evaluation(text: str) -> None:
    assert reachable_evaluations([("train.py", text)]) == []


@pytest.mark.parametrize(
    ("seconds_of_a_step", "expected"),
    [(0.0, 100), (0.05, 100), (0.3, 61)],
)
def test_a_short_script_is_not_hurried_through(seconds_of_a_step: float, expected: int) -> None:
    steps = [0]

    def cpu_time() -> float:
        return steps[0] * seconds_of_a_step

    class CountedProgress(Progress):
        def note_step(self, step: int, peaks: tuple[int, ...], allocated_bytes: int = 0) -> None:
            steps[0] = step
            super().note_step(step, peaks, allocated_bytes)

    progress = CountedProgress(60, Clock(), cpu_time)
    # A hundred steps of 0.05 s are more than a twentieth of the budget, and then come ten passes.
    assert _steps_until_enough(progress, [5], 5) == expected


@pytest.mark.parametrize(("end_of_pass", "expected"), [(5, 93), (None, 89)])
def test_further_epochs_and_steps_follow_while_they_take_little_time(
    end_of_pass: int | None, expected: int
) -> None:
    spent = [0.0]

    class Slow(Progress):
        def note_step(self, step: int, peaks: tuple[int, ...], allocated_bytes: int = 0) -> None:
            # The second step ends the time in which nothing is hurried.
            spent[0] += 3.0 if step == 2 else 0.0625
            super().note_step(step, peaks, allocated_bytes)

    progress = Slow(60, Clock(), processor_clock=lambda: spent[0])
    # A twelfth of the budget is 80 steps of a sixteenth of a second.
    assert _steps_until_enough(progress, [5], end_of_pass) == expected
    assert progress.later_passes_are_alike


def test_the_budget_is_not_spent_while_a_busy_machine_has_no_core_for_the_script() -> None:
    clock, delays = Clock(), {os.getpid(): 0.0, 2: 0.0, 3: 0.0}
    undisturbed = UndisturbedClock(clock, lambda: dict(delays))
    began = undisturbed()
    clock.now += 10
    # The main thread waited, and then the one that computes gradients while the third waited too.
    delays.update({os.getpid(): 4.0, 2: 3.0, 3: 2.0})
    assert undisturbed() - began == 3
    # More threads waited than there was time.
    clock.now += 1
    delays.update({os.getpid(): 7.0, 2: 9.0})
    assert undisturbed() - began == 3
    clock.now += 5
    assert undisturbed() - began == 8


def test_a_clock_never_goes_back_and_is_an_ordinary_one_where_nobody_counts() -> None:
    clock, delays = Clock(), {os.getpid(): 0.0}
    undisturbed = UndisturbedClock(clock, lambda: dict(delays))
    clock.now += 0.2
    before = undisturbed()
    clock.now += 0.2
    delays[os.getpid()] = 0.4
    assert undisturbed() == before
    ordinary = UndisturbedClock(clock, dict)
    began = ordinary()
    clock.now += 7
    assert ordinary() - began == 7


def test_the_kernel_counts_how_long_a_thread_waits_for_a_core() -> None:
    delays = delays_of_threads()
    if not delays:
        pytest.skip("does not apply: this kernel does not count delays")
    assert os.getpid() in delays
    assert all(delay >= 0 for delay in delays.values())
