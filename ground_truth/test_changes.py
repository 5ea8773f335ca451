"""The changes that `ghostgpu explain --script` rehearses need the same memory as on the real card.

That the change made while a script runs equals the edited script is a test of the agent's
(`python/tests/test_changes.py`).
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from test_exactness import REAL, replay_short_scripts

from changes import edited_scripts

MEASURED: dict[str, Any] = json.loads((REAL / "changes.json").read_text())["changes"]


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return replay_short_scripts("changes", tmp_path_factory.mktemp("changes"))


#: A real card measures times where cuDNN searches, and picks what was fastest: workspaces, and what
#: PyTorch keeps cached behind them, depend on it.
MOST_OFF_WHERE_CUDNN_SEARCHES = 0.05


@pytest.mark.parametrize("name", MEASURED)
def test_a_script_with_the_change_takes_what_it_takes_on_the_card(
    name: str, replayed: dict[str, Any]
) -> None:
    real, ours = dict(MEASURED[name]), dict(replayed[name])
    if "cudnn.benchmark = True" in edited_scripts()[name]:
        real_reserved, our_reserved = real.pop("reserved"), ours.pop("reserved")
        assert abs(our_reserved / real_reserved - 1) <= MOST_OFF_WHERE_CUDNN_SEARCHES
    assert ours == real
