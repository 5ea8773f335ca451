"""`--grow`: how memory grows with the batch and with the sequence of a user's own script."""

from __future__ import annotations

import pytest
from conftest import Rehearse

TRAINING = """
import argparse, torch
from torch.utils.data import DataLoader
parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--max-length", type=int, default=256)
options = parser.parse_args()
rows = [torch.ones(options.max_length, dtype=torch.long) for _ in range(400)]
model = torch.nn.Sequential(
    torch.nn.Embedding(1000, 256), torch.nn.Linear(256, 4096), torch.nn.ReLU(),
    torch.nn.Linear(4096, 1000),
).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in DataLoader(rows, batch_size=options.batch_size):
    model(batch.cuda()).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""

ARGUMENTS = ("--grow", "--arg", "--batch-size", "--seq-arg", "--max-length")


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("--grow",), id="loader"),
        pytest.param(ARGUMENTS, id="arguments", marks=pytest.mark.at_length),
    ],
)
def test_bytes_for_each_sample_and_token_are_told_as_text_and_json(
    rehearse_reference: Rehearse, words: tuple[str, ...]
) -> None:
    done = rehearse_reference(TRAINING, *words).expect(0)
    for line in ("by batch", "by sequence", "each sample takes", "each token takes"):
        assert line in done.stdout
    batch, sequence = (done["grows_with"][name] for name in ("batch", "sequence"))
    assert (batch["own"], sequence["own"]) == (32, 256)
    own = {each["size"]: each["peak_allocated_bytes"] for each in sequence["rehearsed"]}
    # The script's own size is one of those rehearsed, with the peak of the plain run.
    assert own[256] == done["peak_allocated_bytes"]
    assert [each["size"] for each in batch["rehearsed"]] == [8, 16, 32, 48, 64]
    # One more token for each of 32 samples is an eighth of a sample's 256.
    eighth = batch["growth"]["bytes_each"] / 8
    assert sequence["growth"]["bytes_each"] == pytest.approx(eighth, rel=0.02)


@pytest.mark.at_length
def test_images_have_no_sequence_and_that_is_said(rehearse_reference: Rehearse) -> None:
    script = """
import torch
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.randn(64, 3, 16, 16), torch.zeros(64, dtype=torch.long))
model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(768, 4096)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images, labels in DataLoader(data, batch_size=8):
    torch.nn.functional.cross_entropy(model(images.cuda()), labels.cuda()).backward()
    optimizer.step()
"""
    done = rehearse_reference(script, "--grow").expect(0)
    growth = done["grows_with"]
    assert growth["batch"]["growth"]["points"] >= 2
    assert growth["sequence"]["growth"] is None
    assert "no whole numbers in rows" in growth["sequence"]["unknown_because"]
    assert "`--seq-arg --max-length`" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "the script iterates no DataLoader"),
        pytest.param(
            ("--arg", "--batch"),
            "the script has no argument `--batch`; it has --batch-size",
            marks=pytest.mark.at_length,
        ),
    ],
)
def test_a_script_without_a_size_to_set_is_said_to_have_none(
    rehearse_reference: Rehearse, words: tuple[str, ...], sentence: str
) -> None:
    script = """
import argparse, torch
parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=4)
batch = parser.parse_args().batch_size
model = torch.nn.Linear(1024, 1024).cuda()
for _ in range(2):
    model(torch.randn(batch, 1024).cuda()).sum().backward()
"""
    done = rehearse_reference(script, "--grow", *words).expect(0)
    assert done["grows_with"]["batch"]["unknown_because"].startswith(sentence)


def test_nothing_is_said_of_growth_unless_asked(rehearse_reference: Rehearse) -> None:
    done = rehearse_reference("import torch; torch.ones(1).cuda()").expect(0)
    assert done["grows_with"] is None
    done = rehearse_reference("import torch", "--arg", "--batch-size").expect(2)
    assert "--grow" in done.stderr
