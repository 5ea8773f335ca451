"""A job that does not fit: first the failing moment, and beside it the run with enough memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Open, Write
from facts import CardFacts, read_facts
from reading import colours_around, composition, moment, palette, plot, settle


@pytest.fixture(scope="module")
def path(write: Write) -> Path:
    return write("--kind", "two-runs", "--card-mib", "1024")


@pytest.fixture(scope="module")
def failed(path: Path) -> CardFacts:
    return read_facts(path.with_suffix(".json"), "failed_cards")[0]


def test_the_page_opens_at_the_moment_at_which_memory_ran_out(
    open_page: Open, path: Path, failed: CardFacts
) -> None:
    page = open_page(path)
    last = failed.events - 1
    assert moment(page) == last
    assert page.inner_text("#moment-title").startswith("When memory ran out: ")
    assert composition(page) == failed.composition(last)
    assert "asked for" in page.inner_text("#composition tr.refused")
    assert page.get_attribute("[data-run=failed]", "aria-pressed") == "true"


def test_what_held_the_card_then_is_said_without_scripts(open_page: Open, path: Path) -> None:
    page = open_page(path, java_script_enabled=False)
    words = page.inner_text(".failed >> nth=0")
    assert "were left on the card" in words and "It asked for" in words
    assert page.locator(".failed .lines tr").count() > 0


def test_the_request_that_failed_is_drawn_above_what_was_there(
    open_page: Open, path: Path, failed: CardFacts
) -> None:
    page = open_page(path)
    page.focus("#timeline")
    # The line of the moment would hide it.
    page.keyboard.press("Home")
    settle(page)
    place = plot(page, "#timeline")
    x = place.x_of(failed.events - 1) - 4
    bad = palette(page, "bad")
    assert any(bad in colours_around(page, "#timeline", x, y) for y in range(24, 200, 2))


def test_the_run_with_unlimited_memory_is_a_click_away(open_page: Open, path: Path) -> None:
    whole = read_facts(path.with_suffix(".json"))[0]
    page = open_page(path)
    page.click("[data-run=recorded]")
    page.wait_for_selector("[data-run=recorded][aria-pressed=true]")
    settle(page)
    assert moment(page) == whole.peak_event()
    page.wait_for_selector("[data-ran-out=no]")
    page.click("[data-run=failed]")
    page.wait_for_selector("[data-ran-out=yes]")
    page.click("[data-act=peak]")
    settle(page)
    page.focus("#timeline")
    page.keyboard.press("f")
    settle(page)
    assert page.inner_text("#moment-title").startswith("When memory ran out: ")


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_nothing_is_wider_than_the_screen(open_page: Open, path: Path, width: int) -> None:
    page = open_page(path, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_run_that_fits_has_no_failing_moment(open_page: Open, small: Path) -> None:
    page = open_page(small)
    assert page.locator("button[data-run]").count() == 0
    assert not page.locator("[data-act=failure]").is_visible()
