"""How the agent gets into a Python process, and what it does there before torch is imported."""

from __future__ import annotations

import os
from pathlib import Path

from conftest import INJECT, Rehearse, environment, make_session, needs_torch, run_python


def test_a_process_without_torch_loads_next_to_nothing(tmp_path: Path) -> None:
    session = make_session(tmp_path)
    code = "import sys; print([m for m in sys.modules if 'ghostgpu' in m])"
    done = run_python(["-c", code], tmp_path, environment(session), session.parent)
    own = [*("agent", "agent.hooks"), *("tricks", "tricks.import_watch", "tricks.startup")]
    loaded = sorted(eval(done.stdout))
    assert loaded == ["_ghostgpu", *(f"_ghostgpu.{name}" for name in own)]
    assert done.stderr == ""
    assert done.reports == []


def test_the_script_sees_its_own_path_and_children_get_the_agent(tmp_path: Path) -> None:
    session = make_session(tmp_path)
    code = """
import os, subprocess, sys
print(any("inject" in entry for entry in sys.path), "inject" in os.environ["PYTHONPATH"])
child = "import sys; print('_ghostgpu.agent' in sys.modules)"
print(subprocess.check_output([sys.executable, "-c", child], text=True).strip())
"""
    done = run_python(["-c", code], tmp_path, environment(session), session.parent)
    assert done.stdout.split() == ["False", "True", "True"]


def test_the_next_sitecustomize_runs_and_is_the_one_that_stays(tmp_path: Path) -> None:
    session = make_session(tmp_path)
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "sitecustomize.py").write_text("MARK = 'theirs'\n")
    path = f"{INJECT}{os.pathsep}{tmp_path / 'theirs'}"
    variables = environment(session, PYTHONPATH=path)
    code = "import sys, sitecustomize; print(sitecustomize.MARK, '_ghostgpu.agent' in sys.modules)"
    done = run_python(["-c", code], tmp_path, variables, session.parent)
    assert done.stdout.split() == ["theirs", "True"], done.stderr


def test_without_a_session_the_agent_stays_out(tmp_path: Path) -> None:
    session = make_session(tmp_path)
    variables = environment(session)
    del variables["GHOSTGPU_SESSION"]
    code = "import sys; print('_ghostgpu.agent' in sys.modules)"
    assert run_python(["-c", code], tmp_path, variables, session.parent).stdout.strip() == "False"


def test_a_blocked_preload_ends_the_process_at_the_import_of_torch(tmp_path: Path) -> None:
    session = make_session(tmp_path)
    code = """
try:
    import torch
except BaseException:
    pass
print("went on")
"""
    done = run_python(["-c", code], tmp_path, environment(session), session.parent)
    assert done.code == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: the stand-in CUDA library was not loaded")
    assert "\n\nhint: " in done.stderr
    assert (done.run_dir / "preload-blocked").exists()


@needs_torch
def test_torch_keeps_its_own_loader(rehearse: Rehearse) -> None:
    done = rehearse("import torch; print(type(torch.__loader__).__name__)")
    assert done.stdout.strip() == "SourceFileLoader"
    assert done.report["torch"]


@needs_torch
def test_an_unreadable_session_is_said_and_does_not_break_the_script(tmp_path: Path) -> None:
    session = make_session(tmp_path)
    session.write_text("{")
    code = """
import _ghostgpu.agent.preload
_ghostgpu.agent.preload.require = lambda: None
import torch
print("went on")
"""
    done = run_python(["-c", code], tmp_path, environment(session), session.parent)
    assert done.stdout.strip() == "went on"
    assert "the session file cannot be read" in done.stderr
