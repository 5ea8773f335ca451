"""How a copy of a script ends: at once, where it is known with which code it would end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ghostgpu.agent.ending import Ending
from ghostgpu.agent.report import RECORD

NO_CUDA: Any = SimpleNamespace(cuda=SimpleNamespace(is_initialized=lambda: False))
NO_PEAKS: Any = None


def _left_with(monkeypatch: pytest.MonkeyPatch, *, is_copy: bool, is_stopped: bool) -> list[int]:
    """The codes with which a process is ended by `Ending`, none where Python does that itself."""
    monkeypatch.setattr(RECORD.report, "stopped_by_step_limit", is_stopped)
    # Nothing is written in the process of the tests.
    monkeypatch.setattr(RECORD.report, "pid", 0)
    monkeypatch.setattr("multiprocessing.util._exit_function", lambda: None)
    ending = Ending(NO_CUDA, "", NO_PEAKS)
    codes: list[int] = []
    ending._hard_exit = codes.append
    if is_copy:
        ending.end_at_once()
    ending._at_exit()
    return codes


@pytest.mark.parametrize("name", ["last_exc", "last_value"])
@pytest.mark.parametrize(
    ("error", "is_copy", "is_stopped", "expected"),
    [
        pytest.param(None, True, True, [0], id="stopped after its last step"),
        pytest.param(None, True, False, [], id="at its own end, with a code nobody knows"),
        pytest.param(ValueError(), True, True, [1], id="by an exception"),
        pytest.param(KeyboardInterrupt(), True, True, [], id="by a signal"),
        pytest.param(None, False, True, [], id="the script itself"),
    ],
)
def test_only_a_copy_ends_at_once(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    error: BaseException | None,
    is_copy: bool,
    is_stopped: bool,
    expected: list[int],
) -> None:
    for each in ("last_exc", "last_value"):
        monkeypatch.setattr(f"sys.{each}", None, raising=False)
    monkeypatch.setattr(f"sys.{name}", error, raising=False)
    assert _left_with(monkeypatch, is_copy=is_copy, is_stopped=is_stopped) == expected
