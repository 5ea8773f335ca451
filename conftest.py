"""Rules for every Python test: what only `make test-all` runs, and that CI skips nothing.

Outside continuous integration, a test that needs a missing browser, torch or tool is skipped with
the reason. With `CI` set, the same test fails and names what is missing. The one exception is a
test that has nothing to check: its reason begins with `DOES_NOT_APPLY`.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any, TypeVar

import pytest

DOES_NOT_APPLY = "does not apply: "
IS_SHORT = os.environ.get("GHOSTGPU_TEST_SCOPE", "all") == "short"

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


def is_ci() -> bool:
    return os.environ.get("CI", "").lower() not in ("", "0", "false", "no")


def failed_if_skipped(report: Report, *, in_ci: bool) -> Report:
    """The report; in continuous integration a skip becomes a failure with one sentence."""
    if not in_ci or not report.skipped or hasattr(report, "wasxfail"):
        return report
    reason = reason_of(report.longrepr)
    if not reason.startswith(DOES_NOT_APPLY):
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} may not be skipped in CI: {reason}"
    return report


def reason_of(skip: Any) -> str:
    """The reason of a skip, which pytest stores as a file, a line and the reason."""
    said = skip[2] if isinstance(skip, tuple) else skip
    return str(said).removeprefix("Skipped: ")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return failed_if_skipped((yield), in_ci=is_ci())


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return failed_if_skipped((yield), in_ci=is_ci())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In the short scope, tests marked `at_length` are left to `make test-all`."""
    if not IS_SHORT:
        return
    left = [item for item in items if item.get_closest_marker("at_length") is not None]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]
