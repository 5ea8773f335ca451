"""`ghostgpu lint --measure`: what a fix saves is the difference between two plain rehearsals."""

from __future__ import annotations

import pytest
from conftest import Ask, Rehearse

# The total keeps the squared losses' graphs, and with them every step's activations.
TRAINING = """
import torch
model = torch.nn.Sequential(
    torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 1024)
).cuda()
criterion = torch.nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0
for step in range(6):
    inputs = torch.randn(2048, 1024, device="cuda")
    loss = criterion(model(inputs), inputs)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss ** 2
print(total)
"""
FIXED = TRAINING.replace("total += loss ** 2", "total += (loss ** 2).detach()")
CARD = ("--gpu", "h200", "--steps", "0")


def test_what_a_fix_saves_is_what_plain_rehearsals_differ_by(
    ask: Ask, rehearse_reference: Rehearse
) -> None:
    words = ("--measure", "--select", "summed-loss", *CARD, "train.py")
    answer = ask("lint", *words, script=TRAINING).expect(0)
    assert (answer["verdict"], answer["recommended"]) == ("fits", "all-fixes")
    as_it_is, fixed = answer["runs"]
    before = rehearse_reference(TRAINING, "--steps", "0").expect(0)
    after = rehearse_reference(FIXED, "--steps", "0").expect(0)
    for figure in ("allocated", "reserved", "device"):
        name = f"peak_{figure}_bytes"
        assert (as_it_is[name], fixed[name]) == (before[name], after[name])
        assert fixed[f"saved_{figure}_bytes"] == before[name] - after[name]
    assert fixed["saved_allocated_bytes"] > 0


# The outputs of the evaluation fill the card, and no fix makes them smaller.
EVALUATING = TRAINING.replace(
    "print(total)",
    """
model.eval()
with torch.no_grad():
    outputs = [torch.empty(1 << 30, device="cuda") for _ in range(64)]
""",
)


@pytest.mark.at_length
def test_a_fix_is_not_recommended_with_which_the_training_still_runs_out(ask: Ask) -> None:
    words = ("--measure", "--select", "summed-loss", *CARD, "train.py")
    answer = ask("lint", *words, script=EVALUATING).expect(3)
    assert (answer["verdict"], answer["recommended"]) == ("does-not-fit", None)
    assert [run["fits"] for run in answer["runs"]] == [False, False]
