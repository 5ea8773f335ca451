"""Finding the user's line changes nothing about what lives for how long."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest

from ghostgpu.agent import stacks
from ghostgpu.tricks import user_code


class Held:
    """Stands for a tensor that a caller has in a variable."""


@pytest.mark.parametrize(
    "look",
    [user_code.users_line, user_code.frame_inside_backward, stacks.current_frames],
    ids=lambda look: look.__name__,
)
@pytest.mark.parametrize("is_main_thread", [True, False])
def test_a_callers_variables_go_when_it_returns_and_not_with_the_next_garbage(
    look: Callable[[], object], is_main_thread: bool
) -> None:
    references: list[weakref.ref[Held]] = []

    def caller() -> None:
        held = Held()
        references.append(weakref.ref(held))
        look()

    was_enabled = gc.isenabled()
    gc.disable()
    try:
        if is_main_thread:
            caller()
        else:
            thread = threading.Thread(target=caller)
            thread.start()
            thread.join()
        assert references[0]() is None
    finally:
        if was_enabled:
            gc.enable()


def test_what_pip_put_into_a_folder_is_not_the_users_but_a_script_beside_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = tmp_path / "library-1.0.dist-info" / "RECORD"
    record.parent.mkdir()
    record.write_text("library/core.py,sha256=x,1\nsingle.py,,\n../../bin/tool,,\n")
    assert user_code.is_user_code(str(tmp_path / "library" / "before.py"))
    monkeypatch.syspath_prepend(str(tmp_path))
    assert not user_code.is_user_code(str(tmp_path / "library" / "core.py"))
    assert not user_code.is_user_code(str(tmp_path / "single.py"))
    assert user_code.is_user_code(str(tmp_path / "train.py"))
    assert user_code.is_user_code(str(tmp_path / "models" / "library" / "core.py"))


def test_the_frame_of_the_thread_that_looks_is_not_taken_for_one_that_waits() -> None:
    found: list[object] = []

    def look() -> None:
        found.append(user_code.frame_inside_backward())

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    names = []
    frame = found[0]
    while frame is not None:
        names.append(frame.f_code.co_name)  # type: ignore[attr-defined]
        frame = frame.f_back  # type: ignore[attr-defined]
    assert sys._getframe().f_code.co_name in names
    assert "look" not in names
