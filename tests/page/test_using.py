"""Zooming, pointing, choosing and reading tables, by pointer and by keyboard alone."""

from __future__ import annotations

from typing import cast

import pytest
from conftest import Open, Write
from facts import Allocation, CardFacts, read_facts
from playwright.sync_api import Page
from reading import (
    colours_around,
    composition,
    moment,
    open_everything,
    palette,
    plot,
    settle,
    window,
)

# The highest pixel of a colour around a column of the timeline.
TOP_OF_BANDS = """([x, colour]) => {
    const canvas = document.getElementById("timeline");
    const { width, height } = canvas;
    const copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const { data } = copy.getImageData(Math.floor(x) - 6, 0, 12, canvas.height);
    const wanted = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
    for (let at = 0; at < data.length; at += 4) {
        // Edges are smoothed: a narrow peak is not quite its colour.
        if (wanted.every((each, channel) => Math.abs(each - data[at + channel]) < 48)) {
            return Math.floor(at / 4 / 12);
        }
    }
    return -1;
}"""


def size(number: int) -> str:
    for shift, unit in [(30, "GiB"), (20, "MiB"), (10, "KiB")]:
        if number >= 1 << shift:
            return f"{number / (1 << shift):.2f} {unit}"
    return f"{number} bytes"


def test_ctrl_and_the_wheel_zoom_around_the_pointer(page: Page, facts: CardFacts) -> None:
    place = plot(page, "#timeline")
    x = place.plot_left + 0.3 * (place.plot_right - place.plot_left)
    page.mouse.move(place.left + x, place.top + 100)
    before = plot(page, "#timeline").event_at(x)
    page.keyboard.down("Control")
    for _ in range(6):
        page.mouse.wheel(0, -100)
        settle(page)
    begin, end = window(page)
    assert end - begin < facts.events / 2
    assert abs(plot(page, "#timeline").event_at(x) - before) <= 2
    for _ in range(12):
        page.mouse.wheel(0, 100)
        settle(page)
    page.keyboard.up("Control")
    assert window(page) == (0, facts.events)


@pytest.mark.parametrize("canvas", ["#timeline", "#addresses"])
def test_the_wheel_alone_scrolls_the_page(page: Page, facts: CardFacts, canvas: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 600})
    place = plot(page, canvas)
    page.mouse.move(place.left + 300, place.top + 100)
    before = page.evaluate("scrollY")
    page.mouse.wheel(0, 120)
    page.wait_for_function("(before) => scrollY > before", arg=before)
    settle(page)
    assert window(page) == (0, facts.events)
    assert "Ctrl and wheel: zoom" in page.inner_text(".help summary")


def test_a_wheel_that_turns_sideways_moves_the_window(page: Page) -> None:
    for _ in range(3):
        page.click("[data-act=in]")
    settle(page)
    begin, end = window(page)
    place = plot(page, "#timeline")
    page.mouse.move(place.left + 300, place.top + 100)
    page.mouse.wheel(60, 0)
    settle(page)
    moved = window(page)
    assert moved[0] > begin
    assert abs((moved[1] - moved[0]) - (end - begin)) < 1e-6


def test_dragging_moves_the_window_and_keeps_its_width(page: Page) -> None:
    for _ in range(3):
        page.click("[data-act=in]")
    settle(page)
    begin, end = window(page)
    place = plot(page, "#timeline")
    page.mouse.move(place.left + 300, place.top + 100)
    page.mouse.down()
    page.mouse.move(place.left + 250, place.top + 100, steps=4)
    page.mouse.up()
    settle(page)
    moved = window(page)
    assert moved[0] > begin
    assert abs((moved[1] - moved[0]) - (end - begin)) < 1e-6


def test_a_click_chooses_the_moment_and_everything_follows(page: Page, facts: CardFacts) -> None:
    place = plot(page, "#timeline")
    for share in (0.02, 0.37, 0.71, 0.99):
        x = place.plot_left + share * (place.plot_right - place.plot_left)
        page.mouse.click(place.left + x, place.top + 150)
        settle(page)
        at = moment(page)
        assert at == place.event_at(x)
        assert composition(page) == facts.composition(at)
        assert page.inner_text("#modules-caption").startswith(size(facts.allocated(at)))
        assert page.inner_text("#segments-caption").startswith(size(facts.reserved(at)))


def test_hovering_the_timeline_lists_what_is_held(page: Page, facts: CardFacts) -> None:
    place = plot(page, "#timeline")
    x = place.plot_left + 0.6 * (place.plot_right - place.plot_left)
    page.mouse.move(place.left + x, place.top + 200)
    text = page.inner_text("#tooltip")
    at = place.event_at(x)
    assert f"event {at:,} " in text
    assert size(facts.reserved(at) + facts.outside) in text
    page.mouse.move(place.left + x, place.top + place.height - 30)
    assert "came" in page.inner_text("#tooltip")


def told(allocation: Allocation) -> list[str]:
    """What a tooltip says of an allocation."""
    module = allocation.module or "outside any module"
    operator = allocation.operator or "(unknown)"
    begin = "before the recording" if allocation.begin is None else f"event {allocation.begin:,}"
    end = "the recording's end" if allocation.end is None else f"event {allocation.end:,}"
    head = f"{size(allocation.block)} {allocation.title}"
    return [head, f"{module} · {operator}", f"from {begin}", f"to {end}"]


def test_hovering_the_map_shows_the_allocation_that_is_there(page: Page, facts: CardFacts) -> None:
    page.click("[data-act=step]")
    for _ in range(4):
        page.click("[data-act=in]")
    settle(page)
    place = plot(page, "#addresses")
    met: set[Allocation] = set()
    for column in range(1, 6):
        x = place.plot_left + column / 6 * (place.plot_right - place.plot_left)
        event = place.event_at(x)
        live = facts.live(event)
        heights: list[tuple[float, int]] = []
        for row in range(1, 11):
            y = row / 11 * place.height
            page.mouse.move(place.left + x, place.top + y)
            if page.locator("#tooltip").is_hidden():
                continue
            text = page.inner_text("#tooltip")
            found = [each for each in live if all(word in text for word in told(each))]
            assert found, (event, text)
            assert palette(page, found[0].category) in colours_around(page, "#addresses", x, y)
            met.update(found[:1])
            if len(found) == 1:
                heights.append((y, found[0].address))
        # Low addresses are at the bottom.
        assert [address for _, address in sorted(heights, reverse=True)] == sorted(
            address for _, address in heights
        )
    assert len(met) > 10


def test_a_click_on_the_map_tells_everything_about_an_allocation(
    page: Page, facts: CardFacts
) -> None:
    place = plot(page, "#addresses")
    page.mouse.click(
        place.left + (place.plot_left + place.plot_right) / 2, place.top + place.height - 6
    )
    settle(page)
    text = page.inner_text("#selection")
    [chosen] = [
        each
        for each in facts.live(moment(page))
        if hex(each.address) in text and f"{each.block:,} bytes" in text
    ]
    for word in [f"{chosen.requested:,} bytes", chosen.module, chosen.title, "train.py:"]:
        assert word in text
    page.click("#selection button[aria-label=Close]")
    settle(page)
    assert page.inner_text("#selection") == ""


def test_the_keyboard_alone_is_enough(page: Page, facts: CardFacts) -> None:
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "timeline":
            break
    assert page.evaluate("document.activeElement.id") == "timeline"
    peak = moment(page)
    page.keyboard.press("Shift+ArrowRight")
    settle(page)
    assert moment(page) == peak + 1
    page.keyboard.press("Home")
    settle(page)
    assert moment(page) == 0
    page.keyboard.press("End")
    settle(page)
    assert moment(page) == facts.events - 1
    page.keyboard.press("p")
    page.keyboard.press("s")
    page.keyboard.press("+")
    settle(page)
    begin, end = window(page)
    assert moment(page) == peak and begin <= peak < end and end - begin < facts.events
    page.keyboard.press("PageUp")
    settle(page)
    assert window(page)[0] < begin
    page.keyboard.press("0")
    settle(page)
    assert window(page) == (0, facts.events)

    page.focus("#addresses")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    settle(page)
    lowest = sorted(facts.live(peak), key=lambda each: each.address)
    assert hex(lowest[1].address) in page.inner_text("#selection")
    assert lowest[1].title in page.inner_text("#live")
    page.keyboard.press("Enter")
    settle(page)
    assert page.locator("#selection").inner_text()
    page.keyboard.press("Escape")
    settle(page)
    assert page.inner_text("#selection") == ""

    page.focus("#segments")
    page.keyboard.press("ArrowRight")
    assert page.locator("#tooltip").is_visible()
    assert page.inner_text("#live")


def test_tables_say_the_same_as_the_charts_and_can_be_sorted(page: Page, facts: CardFacts) -> None:
    open_everything(page)
    peak = moment(page)
    live = facts.live(peak)
    exact = page.locator("#allocations tbody tr td:first-child").evaluate_all(
        "(cells) => cells.map((cell) => cell.title)"
    )
    largest = sorted((each.block for each in live), reverse=True)
    assert exact == [f"{each:,} bytes" for each in largest[: len(exact)]]
    assert f"{len(live):,} allocations are live" in page.inner_text("#allocations caption")

    page.click("#allocations th:first-child button")
    head = page.locator("#allocations th:first-child")
    assert head.get_attribute("aria-sort") == "ascending"
    first = page.locator("#allocations tbody td:first-child").first.get_attribute("title")
    assert first == f"{largest[-1]:,} bytes"

    page.locator("#allocations .more").click()
    assert page.locator("#allocations tbody tr").count() > len(exact)

    page.select_option("#holders select", label="stack")
    stacks = page.locator("#holders tbody tr td:last-child").all_text_contents()
    own = "train.py:44 in one_epoch ← train.py:71 in main"
    assert any(stack.startswith(own) for stack in stacks), stacks
    page.select_option("#holders select", label="category")
    rows = page.locator("#holders tbody tr").evaluate_all(
        "(rows) => rows.map((row) => [row.lastChild.textContent, row.firstChild.title])"
    )
    by_category: dict[str, int] = {}
    for each in live:
        by_category[each.title] = by_category.get(each.title, 0) + each.block
    assert dict(rows) == {title: f"{number:,} bytes" for title, number in by_category.items()}

    while page.locator("#segment-table .more").count() > 0:
        page.locator("#segment-table .more").click()
    sizes = page.locator("#segment-table tbody td:nth-child(2)").evaluate_all(
        "(cells) => cells.map((cell) => Number(cell.title.replaceAll(/[^0-9]/g, '')))"
    )
    assert sum(sizes) == facts.reserved(peak)


def test_a_row_of_the_stages_shows_its_stage(page: Page) -> None:
    open_everything(page)
    row = page.locator("#stages tbody tr", has_text="step 2, backward")
    first = int(row.locator("td:nth-child(2)").inner_text().replace(",", ""))
    length = int(row.locator("td:nth-child(3)").inner_text().replace(",", ""))
    row.locator("button").click()
    settle(page)
    assert window(page) == (first, first + length)
    assert first <= moment(page) < first + length


def test_repeated_layers_are_one_cell_until_each_is_asked_for(page: Page, facts: CardFacts) -> None:
    live = facts.live(moment(page))
    inside = [each for each in live if each.module.startswith("bert.encoder.layer.")]
    total = sum(each.block for each in inside)
    folded = page.get_by_role("button", name=f"bert.encoder.layer.*, {size(total)}", exact=True)
    assert "encoder.layer.* ×4" in folded.inner_text()
    assert page.get_by_role("button", name="bert.encoder.layer.0, ").count() == 0
    page.click("#fold-layers")
    assert page.get_attribute("#fold-layers", "aria-pressed") == "false"
    assert folded.count() == 0
    assert page.get_by_role("button", name="bert.encoder.layer.0, ").count() == 1


def test_a_row_of_repeated_layers_opens(page: Page, facts: CardFacts) -> None:
    page.click("#holders summary")
    button = page.locator("#holders button.fold", has_text="bert.encoder.layer.*.").first
    pattern, count = button.inner_text().split(" ×")
    before, after = pattern.split("*")
    own = [
        each
        for each in facts.live(moment(page))
        if each.module.startswith(before) and each.module.endswith(after)
    ]
    row = button.locator("xpath=ancestor::tr")
    assert row.locator("td").first.get_attribute("title") == (
        f"{sum(each.block for each in own):,} bytes"
    )
    button.click()
    parts = page.locator("#holders tbody tr.part td:last-child").all_inner_texts()
    assert sorted(parts) == sorted({each.module for each in own}) and len(parts) == int(count)
    page.locator("#holders button.fold[aria-expanded=true]").click()
    assert page.locator("#holders tbody tr.part").count() == 0


def test_frames_of_frameworks_are_folded_behind_the_users_lines(page: Page) -> None:
    page.click("#allocations summary")
    page.locator("#allocations tbody tr", has_text="activations").first.click()
    settle(page)
    stack = page.locator("#selection .stack").first
    own = stack.locator("> li.user")
    assert own.count() > 0 and own.first.is_visible()
    frames = stack.locator(".framework li")
    assert frames.count() > 0 and not frames.first.is_visible()
    stack.locator(".framework summary").first.click()
    assert frames.first.is_visible()


def test_modules_open_and_close(page: Page, facts: CardFacts) -> None:
    page.click("#fold-layers")
    layer = page.get_by_role("button", name="bert.encoder.layer.0, ")
    layer.click(position={"x": 8, "y": 8})
    inside = [
        each for each in facts.live(moment(page)) if each.module.startswith("bert.encoder.layer.0.")
    ]
    total = sum(each.block for each in inside)
    caption = page.inner_text("#modules-caption")
    assert caption.startswith(f"{size(total)} in {len(inside)} blocks")
    page.click("#path button:first-child")
    assert page.inner_text("#modules-caption").startswith(size(facts.allocated(moment(page))))


def test_everything_that_can_be_used_has_a_name(page: Page) -> None:
    open_everything(page)
    nameless = page.locator("button, canvas:not([aria-hidden]), select").evaluate_all(
        """(all) => all.filter((each) => !each.ariaLabel && !each.textContent.trim()
            && !each.closest("label")).map((each) => each.outerHTML)"""
    )
    assert nameless == []
    for table in page.locator("main table").all():
        assert table.locator("caption").count() == 1
        assert table.locator("th[scope=col]").count() > 2


def test_a_long_recording_keeps_its_peak_when_it_is_shown_whole(
    open_page: Open, write: Write
) -> None:
    page = open_page(write("--events", "60000", "--layers", "2"))
    [facts] = read_facts(write("--events", "60000", "--layers", "2").with_suffix(".json"))
    peak = facts.peak_event()
    assert moment(page) == peak

    def top_of_the_peak() -> int:
        x = plot(page, "#timeline").x_of(peak)
        return cast(int, page.evaluate(TOP_OF_BANDS, [x, palette(page, "activation")]))

    page.click("[data-act=step]")
    # The line of the moment would hide it.
    page.focus("#timeline")
    for _ in range(20):
        page.keyboard.press("ArrowLeft")
    settle(page)
    near = top_of_the_peak()
    page.keyboard.press("Home")
    page.keyboard.press("0")
    settle(page)
    # One column of pixels is about fifty events now, and shows the highest of them.
    assert abs(top_of_the_peak() - near) <= 3
    page.keyboard.press("p")
    settle(page)
    for _ in range(8):
        page.click("[data-act=in]")
    settle(page)
    begin, end = window(page)
    assert begin <= peak <= end and end - begin < 1000
    assert composition(page) == facts.composition(peak)
