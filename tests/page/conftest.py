"""Opens the report page of a made-up training in a real Chromium.

`make test-page` builds the program that writes the page (`GHOSTGPU_PAGE`) and finds the browser
(`GHOSTGPU_TEST_BROWSER`). Every page is watched: an error on its console, or any request beside the
file itself, fails the test that opened it.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import pytest
from facts import CardFacts, read_facts
from playwright.sync_api import Browser, Page, sync_playwright

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("GHOSTGPU_PAGE") or str(REPOSITORY / "target/release/examples/page")
BROWSER = os.environ.get("GHOSTGPU_TEST_BROWSER", "")
WAIT_MS = 10_000

Open = Callable[..., Page]
Write = Callable[..., Path]


@pytest.fixture(scope="session")
def write(tmp_path_factory: pytest.TempPathFactory) -> Write:
    """Writes the page of a made-up training, once for the same options."""
    folder = tmp_path_factory.mktemp("pages")
    written: dict[tuple[str, ...], Path] = {}

    def write(*options: str) -> Path:
        if options not in written:
            page = folder / f"{len(written)}.html"
            facts = page.with_suffix(".json")
            words = [PROGRAM, "--out", str(page), "--facts", str(facts), *options]
            subprocess.run(words, check=True, stdout=subprocess.DEVNULL, timeout=60)
            written[options] = page
        return written[options]

    return write


@pytest.fixture(scope="session")
def small(write: Write) -> Path:
    return write()


@pytest.fixture(scope="session")
def facts(small: Path) -> CardFacts:
    return read_facts(small.with_suffix(".json"))[0]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if not BROWSER:
        pytest.skip("no Chromium could be found, downloaded or installed (scripts/browser)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Opens a page from its file and waits until all of it is drawn."""
    watched: list[tuple[Page, list[str], list[str]]] = []

    def open_page(path: Path, width: int = 1280, **options: Any) -> Page:
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        context.set_default_timeout(WAIT_MS)
        page = context.new_page()
        troubles: list[str] = []
        requests: list[str] = []
        address = path.as_uri()
        page.on("console", lambda message: troubles.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
        page.on("dialog", lambda dialog: troubles.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(address)
        if options.get("java_script_enabled", True):
            page.wait_for_selector("html[data-state=ready]", timeout=WAIT_MS)
        watched.append((page, troubles, requests))
        return page

    yield open_page
    for page, troubles, requests in watched:
        address = page.url.split("#")[0]
        page.context.close()
        assert troubles == []
        assert requests == [address]


@pytest.fixture
def page(open_page: Open, small: Path) -> Page:
    return open_page(small)
