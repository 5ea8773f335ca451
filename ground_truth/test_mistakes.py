"""What memory mistakes cost: on the virtual card exactly what they cost on the real one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from test_exactness import REAL, replay_short_scripts

MEASURED: dict[str, Any] = json.loads((REAL / "mistakes.json").read_text())["mistakes"]


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return replay_short_scripts("mistakes", tmp_path_factory.mktemp("mistakes"))


@pytest.mark.parametrize("name", MEASURED)
def test_a_mistake_and_its_fix_cost_the_same_as_on_the_card(
    name: str, replayed: dict[str, Any]
) -> None:
    assert replayed[name] == MEASURED[name]


@pytest.mark.parametrize("name", [name for name in MEASURED if "in-place" not in name])
def test_a_fix_never_needs_more_memory(name: str) -> None:
    wrong, right = MEASURED[name]["with"], MEASURED[name]["without"]
    assert right["peak"] <= wrong["peak"]
