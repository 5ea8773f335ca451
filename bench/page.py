"""What the report page costs: writing it, its size, its first picture, and a step of zooming.

    make bench-page

The recording is a generated training of a transformer with a million events; then a million random
events, which compress badly; then ten million, to see that the page stays usable. The time to the
first picture counts from the beginning of the navigation, in a Chromium that is already running,
and is the median of a few.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

REPOSITORY = Path(__file__).resolve().parents[1]
PROGRAM = os.environ.get("GHOSTGPU_PAGE") or str(REPOSITORY / "target/release/examples/page")
BROWSER = os.environ.get("GHOSTGPU_TEST_BROWSER", "")

EVENTS = 1_000_000
MANY_EVENTS = 10_000_000
# The seed of a random recording with one card.
SEED = "11"
ROUNDS = 5
WRITE_LIMIT_S = 3.0
SIZE_LIMIT_MB = 20.0
FIRST_DRAW_LIMIT_S = 1.0
WAIT_MS = 60_000

# Zooms in ten steps from the whole; each is measured until its frame is drawn.
ZOOM = """async () => {
    const times = [];
    const canvas = document.getElementById("timeline");
    for (let step = 0; step < 10; step++) {
        const begin = performance.now();
        canvas.dispatchEvent(new KeyboardEvent("keydown", { key: "+", bubbles: true }));
        await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
        times.push(performance.now() - begin);
    }
    return times;
}"""


def write(path: Path, kind: str, events: int) -> dict[str, Any]:
    words = [PROGRAM, "--out", str(path), "--kind", kind, "--seed", SEED]
    words += ["--layers", "24", "--events", str(events)]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    facts: dict[str, Any] = json.loads(done.stdout)
    return facts


def mark(page: Page, name: str) -> float:
    milliseconds = page.evaluate(
        "(name) => performance.getEntriesByName(name)[0].startTime", f"ghostgpu-{name}"
    )
    return float(milliseconds) / 1000


def open_page(browser: Browser, path: Path) -> tuple[float, float, float]:
    """Seconds to the first picture, to the complete page, and for a step of zooming."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-state=ready]", timeout=WAIT_MS)
    first, ready = mark(page, "first-draw"), mark(page, "ready")
    zoom = statistics.median(page.evaluate(ZOOM)) / 1000
    page.close()
    return first, ready, zoom


def measure(browser: Browser, path: Path, kind: str, events: int) -> bool:
    facts = write(path, kind, events)
    rounds = [open_page(browser, path) for _ in range(ROUNDS)]
    first, ready, zoom = (statistics.median(times) for times in zip(*rounds))
    seconds, size_mb = float(facts["write_seconds"]), float(facts["bytes"]) / 1e6
    print(f"a recording of {facts['events']:,} events{', at random' if kind != 'usual' else ''}")
    print(f"  write the page    {seconds:6.2f} s   (under {WRITE_LIMIT_S:g} s for a million)")
    print(f"  its size          {size_mb:6.2f} MB  (under {SIZE_LIMIT_MB:g} MB for a million)")
    print(f"  first picture     {first:6.2f} s   (under {FIRST_DRAW_LIMIT_S:g} s for a million)")
    print(f"  every allocation  {ready:6.2f} s")
    print(f"  a step of zooming {zoom:6.3f} s")
    return seconds < WRITE_LIMIT_S and size_mb < SIZE_LIMIT_MB and bool(first < FIRST_DRAW_LIMIT_S)


def main() -> int:
    if not BROWSER:
        sys.exit("error: no Chromium could be found, downloaded or installed (scripts/browser)")
    with tempfile.TemporaryDirectory(prefix="ghostgpu-bench-") as folder, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=BROWSER)
        path = Path(folder) / "page.html"
        fine = measure(browser, path, "usual", EVENTS)
        fine &= measure(browser, path, "at-random", EVENTS)
        measure(browser, path, "usual", MANY_EVENTS)
        browser.close()
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
