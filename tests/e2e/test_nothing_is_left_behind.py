"""A rehearsal leaves nothing behind that could be mistaken for results of a real run."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Rehearse

SAVING = """
import torch
model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    model(torch.zeros(4, 64, device="cuda")).sum().backward()
    optimizer.step()
    torch.save(model.state_dict(), "best.pt")
    torch.save(model.state_dict(), "new.pt")
    assert torch.load("best.pt")["weight"].shape == (64, 64)
"""


def test_a_checkpoint_does_not_replace_a_real_one_and_does_not_stay(
    rehearse_reference: Rehearse, tmp_path: Path
) -> None:
    best = tmp_path / "best.pt"
    best.write_bytes(b"weeks of training")
    rehearse_reference(SAVING, "--steps", "0").expect(0)
    assert best.read_bytes() == b"weeks of training"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "answer.json",
        "best.pt",
        "train.py",
    ]


def test_a_checkpoint_stays_when_that_was_asked_for(
    rehearse_reference: Rehearse, tmp_path: Path
) -> None:
    rehearse_reference(SAVING, "--steps", "0", "--keep-checkpoints").expect(0)
    assert (tmp_path / "new.pt").stat().st_size > 64 * 64 * 4


def test_compiled_code_and_timings_stay_in_the_run(
    rehearse_reference: Rehearse, tmp_path: Path
) -> None:
    home, temporary = tmp_path / "home", tmp_path / "tmp"
    home.mkdir()
    temporary.mkdir()
    done = rehearse_reference(
        """
import torch
model = torch.compile(torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU()).cuda())
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(4):
    model(torch.randn(32, 64, device="cuda")).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
from torch._dynamo.utils import counters
print("graphs", counters["stats"]["unique_graphs"])
""",
        "--steps",
        "0",
        environment={"HOME": str(home), "TMPDIR": str(temporary), "XDG_CACHE_HOME": ""},
    ).expect(0)
    assert done["steps"] == 4
    assert "graphs 1" in done.stdout
    left = [path for path in home.rglob("*") if path.is_file()]
    # Answers of the installed cuDNN are the same for every run; nothing else may be kept.
    assert [path for path in left if "ghostgpu" not in path.parts] == []
    assert list(temporary.iterdir()) == []


@pytest.mark.at_length
def test_the_next_line_of_a_shell_script_finds_the_checkpoint(
    rehearse_reference: Rehearse, tmp_path: Path
) -> None:
    (tmp_path / "evaluate.py").write_text(
        "import torch; print('found', torch.load('out/model.pt').shape, torch.ones(1).cuda().shape)"
    )
    done = rehearse_reference(
        """
        import os, torch
        os.makedirs("out", exist_ok=True)
        torch.save(torch.zeros(4, device="cuda").cpu(), "out/model.pt")
        """,
        command=("sh", "-c", f"python train.py && python {tmp_path}/evaluate.py"),
    ).expect(0)
    assert "found torch.Size([4])" in done.stdout
    assert not (done.folder / "out").exists()
