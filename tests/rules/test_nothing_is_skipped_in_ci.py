"""The rule of the root's `conftest.py`, seen from outside: a pytest run over tests that skip."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]

SKIPS_ITSELF = "import pytest\ndef test_it() -> None:\n    pytest.skip('{reason}')\n"
SKIPS_BY_MARK = "import pytest\n@pytest.mark.skip('{reason}')\ndef test_it() -> None: ...\n"
SKIPS_BY_IMPORT = "import pytest\npytest.importorskip('no_{reason}')\ndef test_it() -> None: ...\n"


def outcome(folder: Path, test: str, ci: str) -> subprocess.CompletedProcess[str]:
    """What pytest says of one file, under the rules of this repository."""
    (folder / "conftest.py").write_text((REPOSITORY / "conftest.py").read_text())
    (folder / "test_one.py").write_text(test)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
    environment = {**os.environ, "CI": ci}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("test", [SKIPS_ITSELF, SKIPS_BY_MARK, SKIPS_BY_IMPORT])
def test_what_is_missing_fails_in_ci_and_is_named(tmp_path: Path, test: str) -> None:
    done = outcome(tmp_path, test.format(reason="browser"), ci="true")
    assert done.returncode != 0
    assert "may not be skipped in CI: " in done.stdout
    assert "browser" in done.stdout


@pytest.mark.parametrize("test", [SKIPS_ITSELF, SKIPS_BY_MARK, SKIPS_BY_IMPORT])
@pytest.mark.parametrize("ci", ["", "false"])
def test_elsewhere_it_is_skipped(tmp_path: Path, test: str, ci: str) -> None:
    done = outcome(tmp_path, test.format(reason="browser"), ci=ci)
    assert "1 skipped" in done.stdout
    assert "failed" not in done.stdout


def test_what_has_nothing_to_check_is_skipped_in_ci_too(tmp_path: Path) -> None:
    test = SKIPS_ITSELF.format(reason="does not apply: this torch has no such option")
    done = outcome(tmp_path, test, ci="true")
    assert done.returncode == 0
    assert "1 skipped" in done.stdout
