"""Which module a backward pass works for, when several threads have run forward passes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from conftest import REPOSITORY, Rehearse

sys.path.insert(0, str(REPOSITORY / "tests" / "exports"))

from ghost_file import Card, read_ghost

# Each thread has its own sequence numbers, so both models make nodes with the same ones. The main
# thread runs both backward passes, after both forward passes.
SCRIPT = """
import threading
import torch

class Tower(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = torch.nn.Linear(width, width, bias=False)

    def forward(self, batch):
        return torch.tanh(self.body(batch))

class Own(Tower):
    pass

class Other(Tower):
    pass

DEVICES = {devices}
own, other = Own(512).to(DEVICES[0]), Other(768).to(DEVICES[1])
# Named by their first calls.
with torch.no_grad():
    own(torch.ones(4, 512, device=DEVICES[0]))
    other(torch.ones(4, 768, device=DEVICES[1]))
optimizer = torch.optim.SGD([*own.parameters(), *other.parameters()], 0.1)
results = {{}}

def forward():
    results["other"] = other(torch.ones(4, 768, device=DEVICES[1]))

for _ in range(2):
    optimizer.zero_grad()
    thread = threading.Thread(target=forward)
    thread.start()
    thread.join()
    results["own"] = own(torch.ones(4, 512, device=DEVICES[0]))
    results["other"].sum().backward()
    results["own"].sum().backward()
    optimizer.step()
"""


def gradients(cards: list[Card], width: int) -> set[str]:
    """The modules of the gradients of a square weight."""
    return {
        allocation.module
        for card in cards
        for allocation in card.allocations
        if allocation.category == "gradient" and allocation.requested == 4 * width * width
    }


def cards_of(path: Path) -> list[Card]:
    recording = read_ghost(path)
    assert not recording.warnings
    return recording.cards


@pytest.mark.parametrize("devices", [("cuda:0", "cuda:0"), ("cuda:0", "cuda:1")])
def test_a_backward_pass_belongs_to_the_modules_of_its_own_thread(
    devices: tuple[str, str], rehearse: Rehearse
) -> None:
    script = SCRIPT.format(devices=devices)
    done = rehearse(script, "--steps", "2", "--count", "2", "--record", "run.ghost").expect(0)
    cards = cards_of(done.folder / "run.ghost")
    assert gradients(cards, 512) == {"body"}
    assert gradients(cards, 768) == {"Other.body"}
