"""When a rehearsal stops, and how."""

from __future__ import annotations

import pytest
from conftest import Rehearse, needs_torch

pytestmark = needs_torch

LOOP = """
import torch
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.AdamW(model.parameters())
try:
    for iteration in range(10):
        model(torch.randn(2, 4)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        print("iteration", iteration)
finally:
    print("finally")
print("after the loop")
"""


def test_the_script_ends_cleanly_after_the_steps_with_its_finally_blocks(
    rehearse: Rehearse,
) -> None:
    done = rehearse(LOOP, steps=3)
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["iteration 0", "iteration 1", "finally"]
    assert done.report["steps"] == 3
    assert done.report["stopped_by_step_limit"] is True
    assert [each["step"] for each in done.report["step_peaks"]] == [1, 2, 3]
    assert done.report["exception"] is None


def test_zero_steps_run_to_the_end(rehearse: Rehearse) -> None:
    done = rehearse(LOOP, steps=0)
    assert done.stdout.splitlines()[-1] == "after the loop"
    assert done.report["steps"] == 10
    assert done.report["stopped_by_step_limit"] is False


def test_a_stop_that_is_swallowed_comes_again_at_the_next_step(rehearse: Rehearse) -> None:
    done = rehearse(
        """
        import torch
        model = torch.nn.Linear(4, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        swallowed = 0
        for iteration in range(5):
            model(torch.randn(2, 4)).sum().backward()
            try:
                optimizer.step()
            except:
                swallowed += 1
        print(swallowed)
        """,
        steps=2,
    )
    assert done.code == 0
    assert done.stdout.strip() == "4"


@pytest.mark.parametrize(("critic_steps", "steps"), [(1, 3), (5, 5)])
def test_a_gan_is_not_stopped_before_each_optimizer_has_stepped(
    rehearse: Rehearse, critic_steps: int, steps: int
) -> None:
    done = rehearse(
        f"""
        import atexit, torch
        generator, critic = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)
        for_generator = torch.optim.Adam(generator.parameters())
        for_critic = torch.optim.Adam(critic.parameters())
        atexit.register(lambda: print(len(for_generator.state), len(for_critic.state)))
        for iteration in range(10):
            for _ in range({critic_steps}):
                critic(generator(torch.randn(2, 4)).detach()).sum().backward()
                for_critic.step()
            critic(generator(torch.randn(2, 4))).sum().backward()
            for_generator.step()
        print("not stopped")
        """,
        steps=3,
    )
    assert done.stdout.strip() == "2 2", done.stderr
    assert done.report["steps"] == steps


def test_an_optimizer_that_is_never_used_delays_the_stop_but_not_forever(
    rehearse: Rehearse,
) -> None:
    unused = "unused = torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), lr=1.0)\n"
    script = LOOP.replace("range(10)", "range(100)").replace("try:", unused + "try:")
    done = rehearse(script, steps=3)
    assert done.code == 0
    assert done.report["steps"] == 3 + 16


def test_an_optimizer_around_another_is_not_waited_for(rehearse: Rehearse) -> None:
    done = rehearse(
        """
        import torch

        class Wrapper(torch.optim.Optimizer):
            def __init__(self, parameters):
                super().__init__(parameters, {})
                self.inner = torch.optim.SGD(self.param_groups, lr=0.1)

            def second_step(self):
                self.inner.step()

        model = torch.nn.Linear(4, 4)
        optimizer = Wrapper(model.parameters())
        for iteration in range(50):
            model(torch.randn(2, 4)).sum().backward()
            optimizer.second_step()
        """,
        steps=3,
    )
    assert done.report["steps"] == 3


def test_a_stop_in_a_child_process_is_a_clean_end_of_the_child(rehearse: Rehearse) -> None:
    done = rehearse(
        """
        import torch, torch.multiprocessing

        def train(rank):
            model = torch.nn.Linear(4, 4)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for iteration in range(10):
                model(torch.randn(2, 4)).sum().backward()
                optimizer.step()

        if __name__ == "__main__":
            torch.multiprocessing.start_processes(train, nprocs=2, start_method="fork")
            print("joined")
        """
    )
    assert (done.code, done.stdout.strip()) == (0, "joined"), done.stderr
    # Forked children that do not use CUDA have nothing to report.
    assert done.report["steps"] == 0


def test_a_compiled_optimizer_step_is_counted(rehearse: Rehearse) -> None:
    done = rehearse(
        """
        import torch
        model = torch.nn.Linear(4, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        step = torch.compile(lambda: optimizer.step(), backend="eager")
        for iteration in range(10):
            model(torch.randn(2, 4)).sum().backward()
            step()
        """
    )
    assert done.code == 0, done.stderr
    assert done.report["steps"] == 3


def test_data_loader_workers_leave_no_reports(rehearse: Rehearse) -> None:
    done = rehearse(
        """
        import torch
        data = torch.utils.data.TensorDataset(torch.randn(32, 4))
        model = torch.nn.Linear(4, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for batch, in torch.utils.data.DataLoader(data, batch_size=4, num_workers=2):
            model(batch).sum().backward()
            optimizer.step()
        """
    )
    assert (done.code, done.stderr) == (0, "")
    assert done.report["steps"] == 3
