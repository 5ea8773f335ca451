"""`scripts/check-dependencies`: what `deny.toml` forbids is found."""

from __future__ import annotations

from typing import Any

import pytest
from scripts_as_modules import load

check = load("check-dependencies")

RULES: dict[str, Any] = {
    "licenses": {
        "allow": ["MIT", "Unicode-3.0"],
        "exceptions": [{"crate": "special", "allow": ["Zlib"]}],
    },
    "bans": {
        "multiple-versions": "deny",
        "wildcards": "deny",
        "skip": [{"crate": "twice@1"}],
    },
    "sources": {},
}


def package(name: str, version: str = "1.2.3", **changes: Any) -> dict[str, Any]:
    plain = {"name": name, "version": version, "license": "MIT", "source": check.CRATES_IO}
    return {**plain, "dependencies": [], **changes}


SKIPPED = package("twice", "1.0.0")
ANY_VERSION = {"name": "log", "req": "*"}


def test_what_keeps_to_the_rules_is_no_problem() -> None:
    special = package("special", license="Zlib")
    ours = package("ours", source=None, dependencies=[{**ANY_VERSION, "path": "log"}])
    packages = [SKIPPED, package("twice", "2.0.0"), special, ours]
    assert check.problems(RULES, packages) == []


@pytest.mark.parametrize(
    ("packages", "problem"),
    [
        ([package("a", license="GPL-3.0")], "a 1.2.3 is licensed as GPL-3.0, which is not allowed"),
        ([package("a", license=None)], "a 1.2.3 declares no licence"),
        (
            [package("a", "1.0.0"), package("a", "2.0.0")],
            "a is there in several versions: 1.0.0, 2.0.0",
        ),
        ([package("a", source="git+https://x")], "a 1.2.3 comes from git+https://x"),
        ([package("a", source=None, dependencies=[ANY_VERSION])], "a takes any version of log"),
    ],
)
def test_what_does_not_is_named(packages: list[dict[str, Any]], problem: str) -> None:
    assert check.problems(RULES, [SKIPPED, *packages]) == [problem]


def test_a_version_that_is_skipped_in_vain_is_named() -> None:
    assert check.problems(RULES, []) == ["twice@1 is skipped, but nothing depends on it"]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("MIT", True),
        ("MIT/GPL-3.0", True),
        ("GPL-3.0 OR MIT", True),
        ("MIT AND GPL-3.0", False),
        ("(MIT OR GPL-3.0) AND Unicode-3.0", True),
        ("(Zlib OR GPL-3.0) AND Unicode-3.0", False),
        ("GPL-3.0 OR MIT AND Unicode-3.0", True),
        ("MIT WITH some-exception", False),
        ("Zlib OR (MIT AND (Unicode-3.0 OR Zlib))", True),
    ],
)
def test_an_expression_is_met_by_allowed_licences_or_not(expression: str, expected: bool) -> None:
    assert check.is_allowed(expression, {"MIT", "Unicode-3.0"}) is expected
