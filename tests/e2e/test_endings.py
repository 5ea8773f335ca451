"""How a rehearsal ends, and with which exit code."""

from __future__ import annotations

from conftest import PYTHONS, Rehearse

STEPS = """
import torch
model = torch.nn.Linear(8, 8).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step():
    model(torch.zeros(4, 8, device="cuda")).sum().backward()
    optimizer.step()
"""


def test_stopping_after_the_steps_runs_the_finally_blocks(rehearse: Rehearse) -> None:
    done = rehearse(
        STEPS
        + """
import atexit
atexit.register(print, "at exit")
try:
    for number in range(1000):
        step()
        print("step", number)
finally:
    print("finally")
print("never")
""",
        "--steps",
        "2",
    ).expect(0)
    lines = [line for line in done.stdout.splitlines() if line in ("finally", "at exit", "never")]
    assert lines == ["finally", "at exit"]
    assert done["steps"] == 2
    assert "step 0" in done.stdout.splitlines()
    assert "step 2" not in done.stdout.splitlines()


def test_the_scripts_own_exit_code_passes_through(rehearse: Rehearse) -> None:
    done = rehearse(STEPS + "step()\nraise SystemExit(7)\n").expect(7)
    assert done["fits"] is None
    assert done["script_exit_code"] == 7
    assert done["steps"] == 1


def test_a_script_that_fails_shows_its_own_traceback(rehearse: Rehearse) -> None:
    done = rehearse(STEPS + "step()\n{}['labels']\n").expect(1)
    assert "KeyError: 'labels'" in done.stderr
    assert done["exception"] == "KeyError: 'labels'"
    assert done["fits"] is None


def test_a_refused_call_stops_the_script_and_is_named_with_its_line(rehearse: Rehearse) -> None:
    done = rehearse(
        """
import torch
rows = torch.arange(65, device="cuda")
matrix = torch.sparse_csr_tensor(rows, rows[:64], torch.ones(64, device="cuda"), (64, 64))
matrix @ matrix
print("never")
"""
    ).expect(2)
    assert "never" not in done.stdout
    functions = {call["function"] for call in done["refused"]}
    assert any(function.startswith("cusparse") for function in functions), functions
    frames = [frame for call in done["refused"] for frame in call["stack"] if frame["is_user_code"]]
    assert {frame["source"] for frame in frames} == {"matrix @ matrix"}
    assert "train.py:5" in done.stderr


def test_a_module_of_a_package_can_be_rehearsed(rehearse_reference: Rehearse) -> None:
    done = rehearse_reference(
        STEPS + "import sys\nprint(__name__, sys.argv[1:])\nwhile True:\n    step()\n",
        command=(PYTHONS[0], "-m", "train", "--config", "c.yaml"),
    ).expect(0)
    assert "__main__ ['--config', 'c.yaml']" in done.stdout
    assert done["steps"] == 3


def test_a_card_too_old_for_this_torch_is_measured_and_said_to_be(rehearse: Rehearse) -> None:
    done = rehearse(
        """
        import torch
        model = torch.nn.Linear(64, 64).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(5):
            model(torch.randn(4, 64, device="cuda")).sum().backward()
            optimizer.step()
        """,
        "--gpu",
        "1080ti",
    ).expect(7)
    assert done["verdict"] == "cannot-run"
    assert "has no code for compute capability 6.1" in done["reason"]
    assert done["steps"] == 3
    assert done["peak_allocated_bytes"] > 0


def test_a_failure_that_unknown_values_may_have_caused_is_said_to_be_one(
    rehearse_reference: Rehearse,
) -> None:
    done = rehearse_reference(
        """
        import torch
        error = torch.nn.Linear(3, 3).cuda()(torch.ones(3, device="cuda")).mean()
        print(10 / (error.item() - 0.5))
        """
    ).expect(1)
    assert any("failed at train.py:4, where it reads a value" in note for note in done["notes"])


def test_an_isolated_python_is_counted_and_guarded_like_any_other(
    rehearse_reference: Rehearse,
) -> None:
    script = """
        import os, sys, torch
        assert "PYTHONHASHSEED" not in os.environ
        torch.save(torch.zeros(1, device="cuda"), "zeros.pt")
        optimizer = torch.optim.SGD([torch.zeros(4, device="cuda", requires_grad=True)], lr=0.1)
        for step in range(5):
            optimizer.step()
        """
    done = rehearse_reference(
        script,
        command=("python", "-I", "train.py"),
        environment={"PYTHONHASHSEED": "1"},
    ).expect(0)
    assert done["steps"] == 3
    assert not (done.folder / "zeros.pt").exists()


def test_a_script_that_gives_up_is_named_with_its_line_its_words_and_the_values_it_read(
    rehearse_reference: Rehearse,
) -> None:
    done = rehearse_reference(
        """
        import sys, torch
        norm = torch.nn.Linear(3, 3).cuda().weight.norm().item()
        if norm < 1:
            sys.exit("the gradient vanished")
        """
    ).expect(1)
    assert done["exception"] == "SystemExit at train.py:5: the gradient vanished"
    assert "SystemExit at train.py:5: the gradient" in " ".join(done.stdout.split())
    assert any("gave up at train.py:5" in note and "train.py:3" in note for note in done["notes"])


def test_an_exit_that_is_caught_ends_nothing(rehearse_reference: Rehearse) -> None:
    done = rehearse_reference(
        """
        import sys, torch
        torch.zeros(1, device="cuda")
        try:
            exit("not now")
        except SystemExit:
            pass
        """
    ).expect(0)
    assert done["exception"] is None


def test_a_variable_that_hides_every_card_is_named(rehearse_reference: Rehearse) -> None:
    done = rehearse_reference(
        "import torch; print(torch.cuda.is_available())",
        environment={"CUDA_VISIBLE_DEVICES": "5"},
    )
    sentence = "CUDA_VISIBLE_DEVICES is `5`, which hides every card"
    assert sentence in done.stderr
    assert done["assumptions"][0].startswith(sentence)
    assert "False" in done.stdout


def test_tools_that_ask_about_cards_see_the_virtual_one(rehearse_reference: Rehearse) -> None:
    done = rehearse_reference(
        """
        import subprocess, torch
        held = torch.zeros(1000 << 20, dtype=torch.uint8, device="cuda")
        fields = "--query-gpu=name,memory.used,memory.free,memory.total,uuid"
        words = ["nvidia-smi", fields, "--format=csv,noheader,nounits"]
        name, used, free, total, uuid = subprocess.check_output(words, text=True).split(", ")
        assert name == torch.cuda.get_device_name()
        assert uuid.strip() == f"GPU-{torch.cuda.get_device_properties(0).uuid}"
        free_bytes, total_bytes = torch.cuda.mem_get_info()
        assert int(free) == free_bytes >> 20
        assert 1000 < int(used) == total_bytes - free_bytes >> 20
        assert total_bytes >> 20 < int(total)
        """,
    ).expect(0)
    assert done["fits"] is True


def test_where_the_page_and_the_recording_are_is_said(rehearse_reference: Rehearse) -> None:
    options = ("--report", "page.html", "--record", "train.ghost")
    done = rehearse_reference(STEPS + "step()\n", *options).expect(0)
    assert "ghostgpu: wrote the page to page.html" in done.stderr
    assert "ghostgpu: wrote the recording to train.ghost" in done.stderr
    quiet = rehearse_reference(STEPS + "step()\n", "--quiet", *options).expect(0)
    assert "wrote" not in quiet.stderr


def test_a_loop_that_waits_for_a_value_is_not_known_and_named(rehearse_reference: Rehearse) -> None:
    done = rehearse_reference(
        """
        import torch
        from _ghostgpu.agent.values import waiting_loops
        waiting_loops.OTHERS_AFTER_SECONDS, waiting_loops.ENDS_AFTER_SECONDS = 0.2, 1.0
        net = torch.nn.Linear(3, 9).cuda()
        while True:
            if net(torch.ones(3, device="cuda")).argmax().item() == 7:
                break
        """,
        "--budget",
        "60s",
    ).expect(8)
    assert done["covered"] == []
    assert done["verdict"] == "not-known"
    assert "the loop at train.py:7 waits for a value" in done["reason"]
