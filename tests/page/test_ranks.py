"""The page of a job with several ranks: side by side, and each in full."""

from __future__ import annotations

from conftest import Open, Write
from facts import read_facts


def test_ranks_stand_beside_each_other_and_any_can_be_shown(open_page: Open, write: Write) -> None:
    path = write("--kind", "ranks")
    facts = read_facts(path.with_suffix(".json"))
    page = open_page(path)
    bars = page.locator("#ranks dd")
    assert bars.count() == len(facts) == 3
    # The one that had most is shown first.
    assert page.locator("#card-word").inner_text() == "Rank"
    assert page.locator("#card option:checked").inner_text() == "2"
    for rank, fact in enumerate(facts):
        shown = fact.composition(fact.peak_event())
        parts = (
            bars.nth(rank)
            .locator(".part")
            .evaluate_all("parts => parts.map((part) => Number(part.dataset.bytes))")
        )
        assert sum(parts) == shown["on the card"]
        assert fact.outside // 4 in parts, "NCCL's"
        button = page.locator("#ranks button").nth(rank)
        button.click()
        assert button.get_attribute("aria-pressed") == "true"
        assert page.locator("#card option:checked").inner_text() == str(rank)
        row = page.locator("#composition tr[data-key=nccl]")
        assert row.get_attribute("data-bytes") == str(fact.outside // 4)
