"""A trick that is written into a script has the figures of the same trick applied from outside."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from change_cases import BLOCKS, LATE_ZERO_GRAD, LAYERS, TRAINING, TRANSFORMERS, VISION
from conftest import REPOSITORY, Rehearse, built, needs_torch
from test_changes import figures, forget

pytestmark = needs_torch

CLIPPED = TRAINING.replace(
    "    optimizer.step()\n",
    "    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n    optimizer.step()\n",
)

SLACK = {"--accumulate": (2048, 0), "fp16": (4096, 2 << 20)}
"""By how much a patched script may allocate and reserve more or less than the trick: the divided
loss is a block of its own, the trick keeps counts of what losses average over, and PyTorch's own
scaler has a few blocks, for which a segment may be due."""

IN_SHORT = ("accumulation", "checkpointing of blocks", "chunks")
"""Cases that every test run has; the others are left to `make test-all`."""

CASES: dict[str, tuple[str, list[str], list[dict[str, Any]]]] = {
    "autocast in bf16": (
        BLOCKS + TRAINING,
        ["--amp", "bf16"],
        [{"name": "autocast", "options": {"dtype": "bf16"}}],
    ),
    "autocast over convolutions, with evaluation": (
        VISION,
        ["--amp", "bf16"],
        [{"name": "autocast", "options": {"dtype": "bf16"}}],
    ),
    "autocast in fp16": (
        BLOCKS + CLIPPED,
        ["--amp", "fp16"],
        [{"name": "autocast", "options": {"dtype": "fp16"}}],
    ),
    "settings of the allocator": (
        BLOCKS + TRAINING,
        ["--allocator", "expandable_segments:True"],
        [{"name": "allocator", "options": {"settings": "expandable_segments:True"}}],
    ),
    "images in channels_last order": (
        VISION.replace("model(x.cuda())", "model(x)").replace(
            "    for x, y in checks:\n", "    for x, y in checks:\n        x = x.cuda()\n"
        ),
        ["--channels-last"],
        [{"name": "channels-last"}],
    ),
    "accumulation": (
        BLOCKS + CLIPPED,
        ["--accumulate", "2"],
        [{"name": "accumulation", "options": {"steps": "2"}}],
    ),
    "checkpointing of blocks": (
        BLOCKS + TRAINING,
        ["--checkpoint", "auto"],
        [{"name": "checkpointing"}],
    ),
    "checkpointing of convolutions": (
        VISION,
        ["--checkpoint", "auto"],
        [{"name": "checkpointing"}],
    ),
    "checkpointing of some blocks": (
        BLOCKS + TRAINING,
        ["--checkpoint", "3"],
        [{"name": "checkpointing", "options": {"blocks": "3"}}],
    ),
    "checkpointing by transformers": (
        TRANSFORMERS,
        ["--checkpoint", "auto"],
        [{"name": "checkpointing"}],
    ),
    "no graph in evaluation": (VISION, ["--eval-no-grad"], [{"name": "no-grad-evaluation"}]),
    "a fused optimizer": (
        BLOCKS + TRAINING,
        ["--optimizer", "fused"],
        [{"name": "optimizer-form", "options": {"form": "fused"}}],
    ),
    "an optimizer in for-loop form": (
        BLOCKS + TRAINING,
        ["--optimizer", "for-loop"],
        [{"name": "optimizer-form", "options": {"form": "for-loop"}}],
    ),
    "Adafactor": (BLOCKS + TRAINING, ["--optimizer", "adafactor"], [{"name": "adafactor"}]),
    "gradients before the forward pass": (
        LATE_ZERO_GRAD,
        ["--early-zero-grad"],
        [{"name": "early-zero-grad"}],
    ),
    "gradients dropped before evaluation": (
        VISION,
        ["--eval-drop-gradients"],
        [{"name": "drop-gradients"}],
    ),
    "weights in bfloat16": (TRANSFORMERS, ["--pure-bf16"], [{"name": "bfloat16-weights"}]),
    "chunks": (
        LAYERS,
        ["--chunks", "4"],
        [{"name": "chunking", "options": {"chunks": "4"}}],
    ),
    "a step in backward": (
        LAYERS,
        ["--optimizer", "in-backward"],
        [{"name": "optimizer-in-backward"}],
    ),
    "a smaller evaluation batch": (
        VISION,
        ["--eval-batch", "4"],
        [{"name": "small-evaluation-batch", "options": {"batch": "4"}}],
    ),
    "a smaller batch": (
        VISION,
        ["--smaller-batch", "8"],
        [{"name": "smaller-batch", "options": {"batch": "8"}}],
    ),
    "no search among convolutions": (
        VISION,
        ["--no-cudnn-benchmark"],
        [{"name": "no-cudnn-benchmark"}],
    ),
    "several tricks": (
        BLOCKS + CLIPPED,
        ["--accumulate", "2", "--amp", "bf16", "--checkpoint", "auto", "--optimizer", "fused"],
        [
            {"name": "checkpointing"},
            {"name": "autocast"},
            {"name": "accumulation"},
            {"name": "optimizer-form"},
        ],
    ),
}


def patched(script: str, flags: list[str], folder: Path) -> str:
    """The script after `ghostgpu launch --patch`, applied by `patch`."""
    path = folder / "patched.py"
    path.write_text(script)
    command = [
        str(built("ghostgpu", "GHOSTGPU_PROGRAM")),
        "launch",
        "--patch",
        "-",
        *flags,
        path.name,
    ]
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    assert made.stdout, "the diff is empty"
    subprocess.run(
        ["patch", "--quiet", "-p0"], cwd=folder, input=made.stdout, text=True, check=True
    )
    return path.read_text()


def named(name: str) -> Any:
    return pytest.param(name, marks=[] if name in IN_SHORT else [pytest.mark.at_length])


@pytest.mark.parametrize("name", [named(name) for name in CASES])
def test_a_patched_script_has_the_figures_of_the_trick(
    name: str, rehearse_on_card: Rehearse, tmp_path: Path
) -> None:
    script, flags, tricks = CASES[name]
    applied = rehearse_on_card(script, tricks=tricks, steps=0)
    expected, peaks = figures(applied), applied.report["peaks"]
    forget(applied)
    text = patched(script, flags, tmp_path)
    if "import ghostgpu" in text:
        # Where it is installed it is on the path anyway.
        text = f"import torch, sys; sys.path.append({str(REPOSITORY / 'python')!r})\n{text}"
    by_patch = rehearse_on_card(text, steps=0)
    slack = SLACK.get(next(iter(flags[1:]), ""), SLACK.get(flags[0]))
    if slack is None and "import ghostgpu" not in text:
        assert figures(by_patch) == expected, text
        return
    assert by_patch.code == 0, by_patch.stderr
    (peak,), (known,) = by_patch.report["peaks"], peaks
    for kind, most in zip(("allocated", "reserved"), slack or (0, 0)):
        over = peak[f"peak_{kind}_bytes"] - known[f"peak_{kind}_bytes"]
        assert abs(over) <= most, text


NUMBERS = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(6, 12), nn.Linear(12, 6)

    def forward(self, x):
        return x + self.down(torch.tanh(self.up(x)))

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(3)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x

data = TensorDataset(torch.randn(22, 6), torch.randn(22, 6))
loader = DataLoader(data, batch_size=BATCH)
model = Model()
criterion = nn.MSELoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
for epoch in range(2):
    model.train()
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        scheduler.step()
    model.eval()
    for x, y in loader:
        out = model(x)
"""


def trained(text: str) -> list[Any]:
    """The parameters after a script."""
    import torch

    namespace: dict[str, Any] = {"__name__": "__main__"}
    before = torch.get_default_dtype()
    try:
        exec(compile(text, "script.py", "exec"), namespace)
    finally:
        torch.set_default_dtype(before)
    return [each.detach() for each in namespace["model"].parameters()]


def same(one: list[Any], other: list[Any]) -> bool:
    import torch

    return all(torch.allclose(a, b, rtol=0, atol=1e-12) for a, b in zip(one, other))


@pytest.mark.parametrize(
    "flags",
    [
        ["--checkpoint", "auto"],
        ["--checkpoint", "2"],
        ["--early-zero-grad"],
        ["--eval-no-grad"],
        ["--eval-drop-gradients"],
        ["--optimizer", "for-loop"],
        ["--optimizer", "fused"],
        ["--optimizer", "in-backward"],
        ["--eval-batch", "3", "--drop-last"],
        ["--chunks", "2"],
    ],
    ids=" ".join,
)
def test_a_patched_script_computes_the_same(flags: list[str], tmp_path: Path) -> None:
    script = NUMBERS.replace("BATCH", "11")
    if "--optimizer" in flags:
        # A step in backward has no gradients left to clip.
        lines = [line for line in script.splitlines() if "clip" not in line]
        script = "\n".join(lines) + "\n"
    if "--eval-batch" in flags:
        script = script.replace(
            "for x, y in loader:\n        out", "for x, y in checks:\n        out"
        )
        script = script.replace(
            "model = Model()", "checks = DataLoader(data, batch_size=22)\nmodel = Model()"
        )
    assert same(trained(patched(script, flags, tmp_path)), trained(script))


@pytest.mark.parametrize("drops_last", [False, True])
def test_accumulated_batches_are_one_large_batch(drops_last: bool, tmp_path: Path) -> None:
    """Of 22 samples in batches of 4: windows of 3 batches, of which the last is short both ways."""
    small, large = NUMBERS.replace("BATCH", "4"), NUMBERS.replace("BATCH", "12")
    if drops_last:
        small = small.replace("batch_size=4)", "batch_size=4, drop_last=True)")
        large = large.replace(
            "randn(22, 6), torch.randn(22, 6)", "randn(22, 6)[:20], torch.randn(22, 6)[:20]"
        )
    accumulated = patched(small, ["--accumulate", "3"], tmp_path)
    assert ("ghostgpu.accumulate" in accumulated) is not drops_last
    assert same(trained(accumulated), trained(large))
    assert not same(trained(small), trained(large))


SCRIPTS = REPOSITORY / "crates" / "emission" / "scripts"

ARGUMENTS = """
import ast, sys
from accelerate.commands.config.config_args import load_config_from_file
from transformers import TrainingArguments

tree = ast.parse(open("trainer.py").read())
calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
(call,) = [call for call in calls if getattr(call.func, "id", "") == "TrainingArguments"]
given = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
made = TrainingArguments(**given, use_cpu=True)
assert (made.bf16, made.gradient_accumulation_steps, made.gradient_checkpointing) == (True, 4, True)
assert load_config_from_file("cards.yaml").mixed_precision == "bf16"
"""


@pytest.mark.at_length
def test_libraries_take_the_arguments_that_are_written_for_them(tmp_path: Path) -> None:
    for library in ("transformers", "accelerate", "lightning"):
        pytest.importorskip(library)
    flags = ["--amp", "bf16", "--accumulate", "4"]
    for name in ("accelerator.py", "lightning_module.py"):
        text = patched((SCRIPTS / name).read_text(), flags, tmp_path)
        assert text != (SCRIPTS / name).read_text()
        subprocess.run(
            [sys.executable, "patched.py"], cwd=tmp_path, check=True, capture_output=True
        )
    trainer = (SCRIPTS / "trainer.py").read_text()
    flags += ["--checkpoint", "auto", "--optimizer", "fused", "--smaller-batch", "2"]
    (tmp_path / "trainer.py").write_text(patched(trainer, flags, tmp_path))
    (tmp_path / "cards.yaml").write_text(
        "compute_environment: LOCAL_MACHINE\ndistributed_type: 'NO'\nmixed_precision: 'no'\n"
    )
    command = ["accelerate", "launch", "--config_file", "cards.yaml", "trainer.py"]
    program = built("ghostgpu", "GHOSTGPU_PROGRAM")
    made = subprocess.run(
        [program, "launch", "--patch", "-", "--amp", "bf16", "--", *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    apply = ["patch", "--quiet", "-p0"]
    subprocess.run(apply, cwd=tmp_path, input=made.stdout, text=True, check=True)
    subprocess.run([sys.executable, "-c", ARGUMENTS], cwd=tmp_path, check=True)
