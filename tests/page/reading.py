"""What a test reads off the page, and how it points at it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from playwright.sync_api import Page


def settle(page: Page) -> None:
    """Waits until what was asked for is drawn: the page draws once a frame."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def window(page: Page) -> tuple[float, float]:
    """The events that the timeline shows."""
    data = page.locator("#window")
    return float(data.get_attribute("data-from") or "nan"), float(
        data.get_attribute("data-to") or "nan"
    )


def moment(page: Page) -> int:
    return int(page.get_attribute("#timeline", "aria-valuenow") or "-1")


def composition(page: Page) -> dict[str, int]:
    """Bytes by key, as the table beside the timeline says."""
    rows = page.locator("#composition tr[data-key]")
    pairs = rows.evaluate_all("(rows) => rows.map((row) => [row.dataset.key, row.dataset.bytes])")
    shown = {key: int(number) for key, number in pairs}
    # A part of what is cached has a row of its own, once the segments are known.
    shown["cached"] += shown.pop("cached_unusable", 0)
    return shown


# Pixels are read off a copy: reading them off the canvas itself makes the browser warn about it.
COPY = """(canvas) => {
    const { width, height } = canvas;
    const copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    return copy.getImageData(0, 0, width, height).data;
}"""


def colours_on(page: Page, canvas: str) -> int:
    """How many different colours a canvas shows."""
    script = f"(canvas) => new Set(new Uint32Array(({COPY})(canvas).buffer)).size"
    return cast(int, page.locator(canvas).evaluate(script))


def colours_around(page: Page, canvas: str, x: float, y: float) -> set[str]:
    """The colours of a pixel and its neighbours, as `#rrggbb`."""
    script = f"""(canvas, [x, y]) => {{
        const ratio = canvas.width / canvas.getBoundingClientRect().width;
        const data = ({COPY})(canvas);
        const found = [];
        for (const [dx, dy] of [[0, 0], [-2, 0], [2, 0], [0, -2], [0, 2]]) {{
            const [column, row] = [Math.floor((x + dx) * ratio), Math.floor((y + dy) * ratio)];
            const at = 4 * (row * canvas.width + column);
            const bytes = [...data.slice(at, at + 3)];
            found.push("#" + bytes.map((each) => each.toString(16).padStart(2, "0")).join(""));
        }}
        return found;
    }}"""
    return set(page.locator(canvas).evaluate(script, [x, y]))


def palette(page: Page, name: str) -> str:
    style = "getComputedStyle(document.documentElement)"
    return cast(str, page.evaluate(f"(name) => {style}.getPropertyValue('--' + name).trim()", name))


@dataclass(frozen=True)
class Plot:
    """Where a canvas with an axis of events is on the screen."""

    left: float
    top: float
    width: float
    height: float
    plot_left: float
    plot_right: float
    first: float
    last: float

    def x_of(self, event: int) -> float:
        """The middle of an event."""
        share = (event + 0.5 - self.first) / (self.last - self.first)
        return self.plot_left + share * (self.plot_right - self.plot_left)

    def event_at(self, x: float) -> int:
        share = (x - self.plot_left) / (self.plot_right - self.plot_left)
        return int(self.first + share * (self.last - self.first))


def plot(page: Page, canvas: str) -> Plot:
    element = page.locator(canvas)
    element.scroll_into_view_if_needed()
    box = element.bounding_box()
    assert box is not None
    edges = [float(element.get_attribute(f"data-{side}") or "nan") for side in ("left", "right")]
    return Plot(box["x"], box["y"], box["width"], box["height"], edges[0], edges[1], *window(page))


def open_everything(page: Page) -> None:
    """Opens every fold, so that every table is there."""
    closed = page.locator("details:not([open]) > summary")
    while closed.count() > 0:
        closed.first.click()
    settle(page)
