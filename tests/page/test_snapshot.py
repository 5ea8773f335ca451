"""The page of a memory snapshot: what it says, and what it leaves out as nobody can know it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY, Open, Write
from playwright.sync_api import Page
from reading import composition, moment, settle

RECORDED = REPOSITORY / "ground_truth/allocator/h200"
WITH_STACKS = RECORDED / "bert+default.pickle.gz"
FAILED = RECORDED / "caught-out-of-memory+default-3GiB.pickle.gz"
STREAMS = RECORDED / "two-streams+default.pickle.gz"


def write_snapshot(write: Write, snapshot: Path) -> Path:
    return write("--snapshot", str(snapshot))


def others() -> list[Path]:
    """Snapshots of other releases and kinds, segments alone among them."""
    found = sorted((REPOSITORY / "crates/snapshot/tests/data").rglob("*.pickle*"))
    assert len(found) > 3
    return [*found, RECORDED / "memory-pools+default.pickle.gz", STREAMS]


def levels_of(path: Path) -> list[dict[str, Any]]:
    facts = json.loads(path.with_suffix(".json").read_text())
    levels: list[dict[str, Any]] = facts["cards"][0]["levels"]
    return levels


def assert_moments_are_the_ledgers(page: Page, levels: list[dict[str, Any]], groups: int) -> None:
    """Clicks along the timeline: what the browser counts is what the ledger counted."""
    box = page.locator("#timeline").bounding_box()
    assert box is not None
    seen = set()
    for place in range(40):
        x = box["width"] * (0.07 + 0.92 * place / 40)
        page.locator("#timeline").click(position={"x": x, "y": 60})
        settle(page)
        level = levels[moment(page)]
        assert level["event"] == moment(page)
        shown = composition(page)
        assert shown["allocated"] == level["allocated"]
        assert shown["reserved"] == level["reserved"]
        keys = [key for key in shown if key not in NOT_GROUPS]
        assert len(keys) == groups
        # Groups are listed from the top of the picture down.
        assert [shown[key] for key in reversed(keys)] == level["requested"][:groups]
        seen.add(moment(page))
    assert len(seen) > 30


NOT_GROUPS = {"cached", "rounding", "outside", "allocated", "reserved", "on the card"}


@pytest.mark.parametrize("snapshot", [WITH_STACKS, FAILED], ids=["stacks", "failed"])
def test_sums_of_a_snapshot_are_the_ledgers_at_many_moments(
    open_page: Open, write: Write, snapshot: Path
) -> None:
    path = write_snapshot(write, snapshot)
    groups = json.loads(path.with_suffix(".json").read_text())["groups"]
    assert_moments_are_the_ledgers(open_page(path), levels_of(path), len(groups))


def test_sums_of_a_rehearsal_are_the_ledgers_at_many_moments(open_page: Open, small: Path) -> None:
    assert_moments_are_the_ledgers(open_page(small), levels_of(small), 9)


def test_a_failed_request_stands_on_top(open_page: Open, write: Write) -> None:
    path = write_snapshot(write, FAILED)
    page = open_page(path)
    assert page.inner_text("h1").startswith("Out of memory: a request for ")
    assert "is event " in page.inner_text(".failed >> nth=0")
    failed = json.loads(path.with_suffix(".json").read_text())["cards"][0]["failed"]
    assert moment(page) == failed[-1]
    assert page.inner_text("#moment-title").startswith("When memory ran out: ")


def test_what_nobody_can_know_has_no_panel_and_a_line(open_page: Open, write: Write) -> None:
    page = open_page(write_snapshot(write, WITH_STACKS))
    for hidden in ("[data-act=step]", "#stages"):
        assert not page.locator(hidden).is_visible()
    text = page.inner_text("body")
    for word in (
        "CUDA context and libraries",
        "outside any module",
        "(unknown)",
        "undefined",
        "NaN",
    ):
        assert word not in text, word
    remarks = page.inner_text("#remarks")
    assert "What no snapshot can say" in remarks
    for subject in ("Whose memory it is", "Steps and stages", "Modules", "The rest of the card"):
        assert subject in remarks
    assert page.locator("#treemap").is_visible()


def test_without_stacks_nobody_is_said_to_hold_anything(open_page: Open, write: Write) -> None:
    page = open_page(write_snapshot(write, FAILED))
    assert not page.locator("#treemap").is_visible()


def test_an_allocation_is_told_with_line_segment_stream_and_stack(
    open_page: Open, write: Write
) -> None:
    page = open_page(write_snapshot(write, WITH_STACKS))
    page.click("#allocations summary")
    page.locator("#allocations tbody tr").first.click()
    settle(page)
    facts = page.locator("#selection dt").all_inner_texts()
    assert facts == ["size", "line", "address", "pool", "lifetime", "stack"]
    words = page.inner_text("#selection")
    assert "in the segment of" in words and "default stream" in words


@pytest.mark.parametrize("snapshot", others(), ids=lambda path: path.name)
def test_every_snapshot_opens(open_page: Open, write: Write, snapshot: Path) -> None:
    page = open_page(write_snapshot(write, snapshot))
    text = page.inner_text("body")
    assert "undefined" not in text and "NaN" not in text
    for width in (360, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        settle(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
