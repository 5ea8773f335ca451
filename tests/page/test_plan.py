"""A plan on the page: candidates as points of memory against time, the peak before and after."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Open, Write
from playwright.sync_api import Page

AVAILABLE = 11_900
"""MiB of the card in the made-up plan of `crates/report/examples/page.rs`."""


@pytest.fixture(scope="module")
def planned(write: Write) -> Path:
    return write("--kind", "planned")


def centres(page: Page) -> list[tuple[float, float]]:
    """Where the points are, from the left and from the bottom of the plot."""
    places = page.evaluate(
        """() => {
          const plot = document.querySelector(".plan-points").getBoundingClientRect();
          return [...document.querySelectorAll(".plan-points a.point")].map((point) => {
            const box = point.getBoundingClientRect();
            return [box.x + box.width / 2 - plot.x, plot.bottom - box.y - box.height / 2];
          });
        }"""
    )
    return [(x, y) for x, y in places]


def test_points_stand_at_their_time_and_memory(open_page: Open, planned: Path) -> None:
    page = open_page(planned)
    points = centres(page)
    times = [0.54, 0.66, 1.17, 1.34, 1.62, 0.99]
    peaks = [9_442, 6_240, 9_980, 6_480, 7_310, 14_862]
    across = (points[4][0] - points[0][0]) / (times[4] - times[0])
    up = points[0][1] / peaks[0]
    for (x, y), time, peak in zip(points, times, peaks):
        assert x - points[0][0] == pytest.approx((time - times[0]) * across, abs=2)
        assert y == pytest.approx(peak * up, abs=2)
    limit = page.locator(".plan-points .limit").bounding_box()
    plot = page.locator(".plan-points").bounding_box()
    assert limit is not None and plot is not None
    assert plot["y"] + plot["height"] - limit["y"] == pytest.approx(AVAILABLE * up, abs=3)


def test_the_recommended_one_is_marked_and_leads_to_its_row(open_page: Open, planned: Path) -> None:
    page = open_page(planned)
    assert page.locator(".plan-points .point.chosen").count() == 1
    assert page.locator(".plan-points .point:not(.fits)").count() == 1
    assert "Recommended: bf16 autocast" in page.inner_text("#plan .caption")
    page.click(".plan-points .point.chosen")
    assert "bf16 autocast (recommended)" in page.inner_text("tr:target")


def test_bars_share_one_scale(open_page: Open, planned: Path) -> None:
    page = open_page(planned)
    widths = page.evaluate(
        """() => [...document.querySelectorAll(".plan-bars dd")].map((bar) =>
          [...bar.children].map((part) => part.getBoundingClientRect().width))"""
    )
    before, after = widths
    assert sum(after) / sum(before) == pytest.approx(9_442 / 14_862, rel=0.01)
    assert before[3] / before[0] == pytest.approx(12_400 / 418, rel=0.05)


def test_without_times_points_stand_in_their_order(open_page: Open, write: Write) -> None:
    page = open_page(write("--kind", "planned-without-times"))
    assert "rank" in page.inner_text(".plan-plot .axis")
    xs = [x for x, _ in centres(page)]
    assert xs == sorted(xs) and len(set(xs)) == len(xs)


@pytest.mark.parametrize("width", [320, 1280])
def test_a_plan_is_not_wider_than_the_screen(open_page: Open, planned: Path, width: int) -> None:
    page = open_page(planned, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_plan_is_read_without_scripts(open_page: Open, planned: Path) -> None:
    page = open_page(planned, java_script_enabled=False)
    assert page.locator(".plan-points a.point").count() == 6


def test_a_page_without_a_plan_has_no_such_section(open_page: Open, small: Path) -> None:
    assert open_page(small).locator("#plan").count() == 0
