"""The verdict on whole scripts: its word, its reason, its exit code."""

from __future__ import annotations

import pytest
from conftest import GIB, MIB, Rehearse

MEASURES_NEED = True

TRAINING = """
import torch
model = torch.nn.Linear(2048, 2048).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
kept = []
for step in range(1000):
    rows = 16 if step % 5 == 4 else 1024
    output = model(torch.zeros(rows, 2048, device="cuda"))
    output.sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    {keeps}
"""


def training(keeps: str = "pass") -> str:
    return TRAINING.format(keeps=keeps)


def test_a_job_that_fits_says_what_is_left(rehearse: Rehearse) -> None:
    done = rehearse(training()).expect(0)
    assert (done["verdict"], done["fits"]) == ("fits", True)
    left = done["gpu"]["total_bytes"] - done["needed_device_bytes"]
    assert done["headroom_bytes"] == left
    assert done["margin_bytes"] == 0, "an H200 was measured"
    assert done["reason"].endswith("%) to spare")
    assert "%) to spare" in done.stdout


@pytest.mark.parametrize(
    "keeps",
    [
        pytest.param("kept.append(output)", id="every step"),
        pytest.param(
            "kept.append(output) if step % 2 else None",
            id="every second step",
            marks=pytest.mark.at_length,
        ),
    ],
)
def test_a_leak_will_run_out_and_its_line_is_named(rehearse: Rehearse, keeps: str) -> None:
    done = rehearse(training(keeps), "--steps", "10").expect(5)
    assert (done["verdict"], done["fits"]) == ("will-run-out", False)
    assert done["reason"].startswith("the card is full after about ")
    assert "from train.py:8" in done["reason"]
    assert "`kept`" in done["reason"]
    assert "\nwill run out   needs " in f"\n{done.stdout}"
    assert "ghostgpu lint train.py" in done.stdout


@pytest.mark.parametrize(
    "keeps",
    [
        pytest.param("kept = [*kept[-2:], output]", id="room for three"),
        pytest.param(
            "kept.append(output) if step < 4 else None",
            id="the first steps",
            marks=pytest.mark.at_length,
        ),
        pytest.param(
            "kept.append(output) if step % 4 else kept.clear()",
            id="collected",
            marks=pytest.mark.at_length,
        ),
        pytest.param("kept.append(output) if step in (0, 5) else None", id="each epoch once"),
    ],
)
def test_what_levels_off_fits(rehearse: Rehearse, keeps: str) -> None:
    done = rehearse(training(keeps), "--steps", "12", "--no-retry").expect(0)
    assert done["verdict"] == "fits"


def test_a_leak_in_a_script_that_comes_to_its_end_fits(rehearse: Rehearse) -> None:
    script = training("kept.append(output)").replace("range(1000)", "range(12)")
    assert rehearse(script, "--steps", "0", "--no-retry").expect(0)["verdict"] == "fits"


def test_what_others_use_is_seen_in_use_and_is_not_the_jobs(rehearse: Rehearse) -> None:
    script = "import torch\nprint('free', *torch.cuda.mem_get_info())\n" + training()
    alone = rehearse(script, "--gpu", "3060").expect(0)
    shared = rehearse(script, "--gpu", "3060", "--reserve", "2GiB").expect(0)
    for field in ("peak_device_bytes", "needed_device_bytes", "peak_reserved_bytes"):
        assert shared[field] == alone[field]
    assert shared["headroom_bytes"] == alone["headroom_bytes"] - 2 * GIB

    def free(text: str) -> int:
        line = next(line for line in text.splitlines() if line.startswith("free "))
        return int(line.split()[1])

    assert free(shared.stdout) == free(alone.stdout) - 2 * GIB


def test_a_job_that_fits_alone_may_not_fit_beside_others(rehearse: Rehearse) -> None:
    alone = rehearse(training(), "--gpu", "3060").expect(0)
    reserve = f"{alone['headroom_bytes'] // MIB + 64}MiB"
    done = rehearse(training(), "--gpu", "3060", "--reserve", reserve).expect(3)
    assert done["verdict"] == "does-not-fit"
    assert "CUDA out of memory" in done["oom"]["message"]
    assert done["needed_device_bytes"] == alone["needed_device_bytes"]


def test_less_than_the_margin_is_a_tight_fit(rehearse: Rehearse) -> None:
    roomy = rehearse(training(), "--gpu", "3060").expect(0)
    assert 20 * MIB < roomy["margin_bytes"] < 100 * MIB, "its libraries were not measured"
    memory = f"{roomy['needed_device_bytes'] // MIB + 10}MiB"
    tight = rehearse(training(), "--gpu", "3060", "--memory", memory).expect(4)
    assert tight["verdict"] == "fits-tightly"
    asked = rehearse(training(), "--gpu", "3060", "--margin", "99%").expect(4)
    assert asked["reason"].endswith(": --margin asks for it")


def test_a_script_that_does_not_see_the_card_says_which_variable_hides_it(
    rehearse: Rehearse,
) -> None:
    script = training().replace('device="cuda"', "device=device").replace(".cuda()", ".to(device)")
    script = f"import torch\ndevice = 'cuda' if torch.cuda.is_available() else 'cpu'\n{script}"
    rehearse(script, "--no-retry").expect(0)
    done = rehearse(script, environment={"CUDA_VISIBLE_DEVICES": "5"}).expect(6)
    assert done["verdict"] == "did-not-use-card"
    assert done["reason"] == "CUDA_VISIBLE_DEVICES=5 hides every card from the script"
    assert "env -u CUDA_VISIBLE_DEVICES ghostgpu run" in done.stdout
    itself = f"import os\nos.environ['CUDA_VISIBLE_DEVICES'] = ''\n{script}"
    hidden = rehearse(itself).expect(6)
    assert hidden["reason"] == 'CUDA_VISIBLE_DEVICES="" hides every card from the script'
    chosen = rehearse(script.replace("torch.cuda.is_available()", "False")).expect(6)
    assert chosen["reason"] == "the script put nothing on the card"
