"""What a change does to a script's memory is what the line does that it stands for, to the byte."""

from __future__ import annotations

import importlib.util

import pytest
from change_cases import BLOCKS, CASES, NOTHING_TO_CHANGE, TRAINING
from conftest import Rehearsal, Rehearse, needs_torch

from ghostgpu.agent.shared_numbers import USAGE_FILE

pytestmark = needs_torch

AS_IT_IS: dict[str, object] = {}
"""Figures of scripts without a change, which several cases share."""


def figures(done: Rehearsal) -> object:
    assert done.code == 0, done.stderr
    usage = (done.run_dir / USAGE_FILE).read_bytes()
    return done.report["peaks"], done.report["step_peaks"], usage[72:80]


def forget(done: Rehearsal) -> None:
    for path in done.run_dir.glob("agent-*.json"):
        path.unlink()


@pytest.mark.parametrize("name", CASES)
def test_a_change_has_the_figures_of_the_line_it_stands_for(
    name: str, rehearse_on_card: Rehearse
) -> None:
    case = CASES[name]
    if importlib.util.find_spec(case.needs) is None:
        pytest.skip(f"{case.needs} is not installed")
    changed = rehearse_on_card(
        case.script, tricks=[{"name": case.change, "options": case.options}], steps=0
    )
    figures_of_change = figures(changed)
    (report,) = changed.report["changes"]
    assert report["name"] == case.change
    assert case.did in (report["did"] or ""), report
    assert case.line in (report["line"] or ""), report
    assert changed.report["notes"] == []
    forget(changed)
    by_hand = rehearse_on_card(case.by_hand, steps=0)
    assert figures_of_change == figures(by_hand)
    forget(by_hand)
    if case.change not in ("leave-room", "no-limit"):
        if case.script not in AS_IT_IS:
            AS_IT_IS[case.script] = figures(rehearse_on_card(case.script, steps=0))
        assert figures_of_change != AS_IT_IS[case.script], "the change changes nothing"


@pytest.mark.parametrize("change", NOTHING_TO_CHANGE)
def test_a_change_without_a_place_says_so_and_changes_nothing(
    change: str, rehearse_on_card: Rehearse
) -> None:
    done = rehearse_on_card(NOTHING_TO_CHANGE[change], tricks=[{"name": change}], steps=0)
    assert (done.code, done.report["changes"][0]["did"]) == (0, None), done.stderr
    before = figures(done)
    forget(done)
    assert before == figures(rehearse_on_card(NOTHING_TO_CHANGE[change], steps=0))


def test_a_change_that_the_script_cannot_bear_lets_it_fail(rehearse_on_card: Rehearse) -> None:
    script = BLOCKS + "model.eval()\n" + TRAINING
    done = rehearse_on_card(script, tricks=[{"name": "no-grad-evaluation"}], steps=0)
    assert done.code == 1
    assert "does not require grad" in done.report["exception"]


def test_an_unknown_trick_ends_the_script(rehearse_on_card: Rehearse) -> None:
    done = rehearse_on_card("import torch\nprint('went on')", tricks=[{"name": "nonsense"}])
    assert (done.code, done.stdout) == (2, "")
    assert "there is no trick `nonsense`\n\nhint: " in done.stderr
