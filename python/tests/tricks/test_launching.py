"""Trainings that are launched: tricks in every process, and nothing where none is asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

PYTHON = Path(__file__).resolve().parents[2]

TRAINING = """
import os, sys, torch
from torch import nn
torch.manual_seed(0)
torch.use_deterministic_algorithms(True)
layers = [nn.Linear(6, 8)]
for _ in range(3):
    layers += [nn.ReLU(), nn.Linear(8, 8)]
model = nn.Sequential(*layers)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    loss = model(torch.randn(4, 6)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print([parameter.double().sum().item().hex() for parameter in model.parameters()])
print(sorted(set(os.environ) & {"GHOSTGPU_TRICKS", "PYTHONPATH"}), len(sys.stdin.read()))
sys.exit(7)
"""


def launched(
    folder: Path, words: list[str], text: str = TRAINING, **variables: str
) -> subprocess.CompletedProcess[str]:
    (folder / "train.py").write_text(text)
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, **variables},
        input="four",
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def module(*words: str) -> list[str]:
    """`python -m ghostgpu.tricks`, found without a variable that the script would see."""
    start = f"import sys; sys.path.insert(0, {str(PYTHON)!r}); sys.argv[0] = '-m'; "
    return ["-c", start + "from ghostgpu.tricks.__main__ import main; main(sys.argv[1:])", *words]


def test_without_options_nothing_is_changed(tmp_path: Path) -> None:
    alone = launched(tmp_path, ["train.py"])
    done = launched(tmp_path, module("train.py"))
    assert (done.returncode, done.stdout, done.stderr) == (7, alone.stdout, alone.stderr)
    assert "[] 4" in done.stdout


def test_tricks_keep_numbers_input_and_exit_code_and_say_what_they_did(tmp_path: Path) -> None:
    alone = launched(tmp_path, ["train.py"])
    words = ["--checkpoint", "auto", "--early-zero-grad", "--eval-no-grad", "train.py"]
    done = launched(tmp_path, module(*words))
    assert done.returncode == 7
    assert done.stdout.splitlines()[0] == alone.stdout.splitlines()[0]
    assert done.stderr.splitlines() == [
        "ghostgpu: checkpointing: 1 Sequential row of layers run in pieces",
        "ghostgpu: no-grad-evaluation: found no place: the script calls no model in eval() with a "
        "graph",
        "ghostgpu: early-zero-grad: gradients set to None before forward, not at train.py:13",
    ]


def test_children_and_the_next_sitecustomize_get_what_is_theirs(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "sitecustomize.py").write_text("MARK = 'theirs'\n")
    text = """
import subprocess, sys, sitecustomize
print(sitecustomize.MARK, any("inject" in entry for entry in sys.path))
code = "import sys; print('_ghostgpu.tricks' in sys.modules, 'torch' in sys.modules)"
print(subprocess.check_output([sys.executable, "-c", code], text=True).strip())
"""
    done = launched(tmp_path, module("--inplace", "train.py"), text, PYTHONPATH=str(theirs))
    assert done.stdout.split() == ["theirs", "False", "True", "False"], done.stderr
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("--amp bf16 --pure-bf16", "exclude each other"),
        ("--optimizer lion", "is no value of --optimizer"),
        ("--checkpoint Attention", "has no module called Attention"),
        ("--optimizer 8bit", "neither is installed"),
    ],
)
def test_what_cannot_be_right_ends_before_the_first_step(
    words: str, reason: str, tmp_path: Path
) -> None:
    if "neither" in reason and any(map(_is_installed, ("bitsandbytes", "torchao"))):
        pytest.skip("one of them is installed")
    done = launched(tmp_path, module(*words.split(), "train.py"))
    assert (done.returncode, done.stdout) == (2, "")
    assert reason in done.stderr and "\n\nhint: " in done.stderr
    assert "Traceback" not in done.stderr


def _is_installed(name: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(name) is not None


def test_an_optimizer_without_the_form_is_refused(tmp_path: Path) -> None:
    text = TRAINING.replace("SGD(", "RMSprop(")
    done = launched(tmp_path, module("--optimizer", "fused", "train.py"), text)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("ghostgpu: RMSprop has no fused form\n\nhint: ")


LOADING = """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
class Transform(nn.Module):
    def forward(self, x):
        return x + torch.is_autocast_enabled("cuda")
class Images(Dataset):
    transform = Transform()
    def __len__(self):
        return 4
    def __getitem__(self, index):
        return self.transform(torch.zeros(3))
print(sum(float(batch.sum()) for batch in DataLoader(Images(), batch_size=2, num_workers=1)))
"""


def test_transforms_in_workers_of_a_loader_are_left_alone(tmp_path: Path) -> None:
    done = launched(tmp_path, module("--amp", "fp16", "train.py"), LOADING)
    assert (done.returncode, done.stdout.strip()) == (0, "0.0"), done.stderr


def test_a_refusal_in_a_backward_pass_ends_the_script_like_others(tmp_path: Path) -> None:
    passes = "loss.backward(); model(torch.randn(4, 6)).sum().backward()"
    twice = TRAINING.replace("loss.backward()", passes)
    done = launched(tmp_path, module("--optimizer", "in-backward", "train.py"), twice)
    assert done.returncode == 2
    assert "ghostgpu: SGD cannot step in backward: a second backward pass" in done.stderr
    assert "Traceback" not in done.stderr
