"""`ghostgpu cards` says the same about a card as `ghostgpu run`."""

from __future__ import annotations

import pytest
from conftest import Ask, Rehearse

MEASURES_NEED = True

# Its peak is about the memory of cards with 8 GiB, and depends on their multiprocessors, over which
# sums are split.
TRAINING = """
import torch
model = torch.nn.Sequential(
    *[part for _ in range(6) for part in (torch.nn.Linear(4096, 4096), torch.nn.ReLU())]
).cuda()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(3):
    model(torch.randn(33000, 4096, device="cuda")).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""

FIGURES = ("verdict", "needed_device_bytes", "headroom_bytes", "margin_bytes")


@pytest.mark.at_length
def test_every_card_is_told_what_a_run_on_it_says(ask: Ask, rehearse_reference: Rehearse) -> None:
    chosen = "3050-6,3050-8,3060,3070,3080,3090,3090ti,a2000-6,a4000,a5000,a6000,h200"
    done = ask("cards", "--gpu", chosen, "--steps", "3", "train.py", script=TRAINING).expect(0)
    cards = {card["name"]: card for card in done["cards"]}
    verdicts = {card["verdict"] for card in cards.values()}
    assert {"fits", "does-not-fit"} <= verdicts, "some cards are at their limits"
    rehearsed = {name for name, card in cards.items() if card["rehearsed"]}
    assert 0 < len(rehearsed) < len(cards)
    assert done["rehearsals"] < 2 * len(cards)
    # Two cards at their limits, and the first, the middle and the last of the others.
    others = [name for name in cards if name not in rehearsed]
    for name in {*sorted(rehearsed)[:2], others[0], others[len(others) // 2], others[-1]}:
        run = rehearse_reference(TRAINING, "--gpu", name, "--steps", "3")
        told = {field: cards[name][field] for field in FIGURES}
        assert told == {field: run[field] for field in FIGURES}, name


@pytest.mark.at_length
def test_two_cards_are_told_what_runs_on_them_say(ask: Ask, rehearse_reference: Rehearse) -> None:
    script = TRAINING.replace("33000", "512")
    done = ask("cards", "--gpu", "t4,a100", "--steps", "3", "train.py", script=script).expect(0)
    assert done["smallest_that_fits"] == "T4"
    run = rehearse_reference(script, "--gpu", "t4", "--steps", "3").expect(0)
    told = {field: done["cards"][0][field] for field in FIGURES}
    assert told == {field: run[field] for field in FIGURES}
