"""Numbers on the page are those of every other report."""

from __future__ import annotations

from conftest import REPOSITORY
from playwright.sync_api import Browser


def test_sizes_are_those_of_the_command_line(browser: Browser) -> None:
    table = (REPOSITORY / "crates/text/sizes.tsv").read_text().splitlines()
    pairs = [line.split("\t") for line in table if line and not line.startswith("#")]
    assert len(pairs) > 10
    module = (REPOSITORY / "web/format.js").read_text().replace("export ", "")
    page = browser.new_page()
    script = f"(all) => {{ {module}; return all.map((bytes) => size(bytes)); }}"
    shown = page.evaluate(script, [int(bytes_) for bytes_, _ in pairs])
    page.close()
    assert shown == [words for _, words in pairs]
