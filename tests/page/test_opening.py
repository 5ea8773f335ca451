"""The page opens from a file, alone, everywhere, and says and draws what it should."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Open, Write
from facts import CardFacts, read_facts
from playwright.sync_api import Page
from reading import colours_on, composition, moment, open_everything, palette, plot, settle


def test_the_answer_stands_on_top(open_page: Open, write: Write) -> None:
    fitting = open_page(write())
    assert fitting.inner_text("h1").startswith("It fits: NVIDIA GeForce RTX 3060 has 12.00")
    misfit = open_page(write("--card-mib", "1024"))
    assert misfit.inner_text("h1").startswith("It does not fit: ")
    assert "▼ A request for 1.00 GiB failed" in misfit.inner_text("#window")


def test_every_chart_is_drawn(page: Page) -> None:
    assert colours_on(page, "#timeline") > 8
    assert colours_on(page, "#minimap") > 2
    assert colours_on(page, "#addresses") > 5
    assert colours_on(page, "#segments") > 3
    assert page.locator("#treemap .leaf").count() > 20


def test_the_first_moment_shown_is_the_peak_and_adds_up(page: Page, facts: CardFacts) -> None:
    peak = facts.peak_event()
    assert moment(page) == peak
    shown = composition(page)
    assert shown == facts.composition(peak)
    parts = set(shown) - {"allocated", "reserved", "on the card"}
    assert sum(shown[part] for part in parts) == shown["on the card"]


def test_what_fragmentation_holds_is_what_the_ledger_counts(page: Page, facts: CardFacts) -> None:
    row = page.locator("#composition tr[data-key=cached_unusable]")
    assert int(row.get_attribute("data-bytes") or "0") == facts.pinned_at_peak > 0


def test_the_figures_are_the_recordings_peaks(page: Page, facts: CardFacts) -> None:
    titles = page.locator("#figures dd").evaluate_all("(all) => all.map((each) => each.title)")
    reserved = max(facts.reserved(at) for at, _, _ in facts.segments)
    peak = facts.peak_event()
    expected = [
        facts.allocated(peak),
        reserved,
        reserved + facts.outside,
        facts.reserved(peak) - facts.allocated(peak),
        12 << 30,
    ]
    assert titles == [f"{each:,} bytes" for each in expected]


@pytest.mark.parametrize("seed", ["3", "5"])
def test_every_moment_of_any_recording_adds_up(open_page: Open, write: Write, seed: str) -> None:
    path = write("--kind", "at-random", "--seed", seed, "--events", "150")
    card = read_facts(path.with_suffix(".json"))[0]
    page = open_page(path)
    assert moment(page) == card.peak_event()
    place = plot(page, "#timeline")
    for event in range(0, card.events, 13):
        page.mouse.click(place.left + place.x_of(event), place.top + 150)
        settle(page)
        assert moment(page) == event
        assert composition(page) == card.composition(event)


@pytest.mark.parametrize("system", ["light", "dark"])
def test_colours_follow_the_system_until_the_reader_chooses(
    open_page: Open, small: Path, system: str
) -> None:
    page = open_page(small, color_scheme=system)
    theme = page.locator("html")
    other = "light" if system == "dark" else "dark"
    assert theme.get_attribute("data-theme") == system
    before = palette(page, "ground"), page.locator("#timeline").screenshot()
    page.click("#theme")
    settle(page)
    assert theme.get_attribute("data-theme") == other
    assert page.get_attribute("#theme", "aria-pressed") == str(other == "dark").lower()
    after = palette(page, "ground"), page.locator("#timeline").screenshot()
    assert before[0] != after[0] and before[1] != after[1]


@pytest.mark.parametrize("width", [320, 390, 700, 1600])
def test_nothing_is_wider_than_the_screen(open_page: Open, small: Path, width: int) -> None:
    page = open_page(small, width=width)
    open_everything(page)
    page.focus("#addresses")
    page.keyboard.press("ArrowUp")
    settle(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert colours_on(page, "#timeline") > 8


def test_without_scripts_the_answer_and_its_assumptions_are_readable(
    open_page: Open, small: Path
) -> None:
    page = open_page(small, java_script_enabled=False)
    assert page.inner_text("h1").startswith("It fits:")
    assert "this training is made up" in page.inner_text("#remarks")
    assert "scripts are switched off" in page.inner_text("header")


def test_it_prints_in_light_colours(open_page: Open, small: Path) -> None:
    page = open_page(small, color_scheme="dark")
    page.evaluate(
        "addEventListener('beforeprint', () => {"
        " window.printed = document.documentElement.dataset.theme; })"
    )
    assert len(page.pdf()) > 20_000
    assert page.evaluate("window.printed") == "light"
    assert page.get_attribute("html", "data-theme") == "dark"


def test_a_second_card_can_be_chosen(open_page: Open, write: Write) -> None:
    path = write("--kind", "two-cards")
    second = read_facts(path.with_suffix(".json"))[1]
    page = open_page(path)
    first = composition(page)
    page.select_option("#card", "1")
    page.wait_for_selector("#composition [data-key=cached_unusable]")
    settle(page)
    assert composition(page) == second.composition(second.peak_event())
    page.select_option("#card", "0")
    settle(page)
    assert composition(page) == first


def test_hostile_names_are_text_and_nothing_else(open_page: Open, write: Write) -> None:
    page = open_page(write("--kind", "hostile", "--layers", "1"))
    open_everything(page)
    for key in ["ArrowUp", "ArrowUp"]:
        page.focus("#addresses")
        page.keyboard.press(key)
    settle(page)
    evil = "</script><img src=x onerror="
    assert page.title().startswith("GPU memory of train.py")
    assert page.locator("img").count() == 0
    assert page.locator("main b > b, main script").count() == 0
    for part in ["#selection", "#allocations", "#holders", ".rehearsed", "#remarks", "h1"]:
        assert evil in page.inner_text(part), part
    labels = page.locator("#treemap .cell").evaluate_all(
        "(all) => all.map((each) => each.ariaLabel)"
    )
    assert any(evil in label for label in labels)


@pytest.mark.parametrize("kind", ["wild", "nothing", "no-card"])
def test_a_recording_without_sense_or_without_anything_opens_all_the_same(
    open_page: Open, write: Write, kind: str
) -> None:
    page = open_page(write("--kind", kind, "--layers", "1", "--steps", "1"))
    assert page.get_attribute("html", "data-state") == "ready"
    assert page.locator("#trouble").is_hidden()
    assert page.inner_text("h1").startswith("Peak: " if kind == "wild" else "It fits:")
    if kind != "no-card":
        open_everything(page)
        page.focus("#addresses")
        for key in ["ArrowUp", "ArrowDown", "+", "End", "Enter", "s", "p", "0"]:
            page.keyboard.press(key)
            settle(page)


def test_the_same_recording_gives_the_same_file(write: Write) -> None:
    one, other = write("--steps", "2"), write("--steps", "2", "--layers", "4")
    assert one != other
    assert one.read_bytes() == other.read_bytes()
