"""The JSON documents for programs have exactly the fields that the docs describe."""

from __future__ import annotations

import re

from conftest import REPOSITORY, Ask, Rehearse

SCRIPT = """
import torch
from torch.utils.data import DataLoader
model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in DataLoader(torch.ones(32, 64), batch_size=4):
    model(batch.cuda()).sum().backward()
    optimizer.step()
"""


def described(heading: str) -> set[str]:
    """The fields in the table below a heading of `docs/run-json.md`."""
    text = (REPOSITORY / "docs/run-json.md").read_text()
    part = re.split(r"^#+ ", text.split(heading, 1)[1], maxsplit=1, flags=re.MULTILINE)[0]
    cells = re.findall(r"^\| (`[^|]*`) \|", part, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


def test_every_field_of_an_answer_is_described(rehearse_reference: Rehearse) -> None:
    done = rehearse_reference(SCRIPT, "--grow").expect(0)
    assert done.answer is not None
    assert set(done.answer) == described("# An answer as JSON")
    for size in done["grows_with"].values():
        assert set(size) == described("## `grows_with`")
    assert set(done["grows_with"]["batch"]["growth"]) == described("### `growth`")


def test_every_field_of_a_largest_batch_is_described(ask: Ask) -> None:
    done = ask("max-batch", "--gpu", "t4", "train.py", script=SCRIPT).expect(0)
    assert done.answer is not None
    assert set(done.answer) == described("## The largest batch")
    assert done["schema"] == "ghostgpu.max-batch/1"
