"""Which ranks are started, and which cards each of them sees."""

from __future__ import annotations

import dataclasses
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from ghostgpu.agent.ranks.absent_ranks import AbsentRanks, speaker_for
from ghostgpu.agent.ranks.rank_launcher import Place, places
from ghostgpu.agent.session import RanksRequest


def request(nodes: int, chosen: str | tuple[int, ...], shares_nodes: bool = False) -> RanksRequest:
    return RanksRequest(nodes, cards_per_node=2, shares_nodes=shares_nodes, chosen=chosen)


def test_every_node_that_is_used_has_cards_of_its_own() -> None:
    assert places(request(4, (0, 5, 7)), nodes=4, per_node=2) == [
        Place(0, node=0, local_rank=0, cards=(0, 1)),
        Place(5, node=2, local_rank=1, cards=(2, 3)),
        Place(7, node=3, local_rank=1, cards=(4, 5)),
    ]


def test_where_nodes_share_cards_every_rank_has_the_one_it_uses_for_itself() -> None:
    assert [place.cards for place in places(request(4, (0, 5, 7), shares_nodes=True), 4, 2)] == [
        (2, 1),
        (0, 3),
        (0, 4),
    ]


@pytest.mark.parametrize(
    ("chosen", "ranks"),
    [("all", [0, 1, 2, 3]), ("ends", [0, 3]), ((1, 2), [1, 2])],
)
def test_ranks_are_all_of_them_the_ends_or_some(
    chosen: str | tuple[int, ...], ranks: list[int]
) -> None:
    assert [place.rank for place in places(request(2, chosen), 2, 2)] == ranks


@pytest.mark.parametrize(
    ("nodes", "per_node", "chosen", "sentence"),
    [
        (16, 2, "all", "the job is started on 16 nodes, and --nodes says 2: use --nodes 16"),
        (1, 2, "all", "the job is started on 1 node, and --nodes says 2: use --nodes 1"),
        (2, 8, "all", "a node has 8 ranks and 2 cards: use --count 8"),
        (2, 2, (0, 4), "rank 4 is to be run of a job with ranks 0 to 3"),
    ],
)
def test_what_does_not_match_is_told_in_a_sentence(
    nodes: int, per_node: int, chosen: str | tuple[int, ...], sentence: str
) -> None:
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        places(request(2, chosen), nodes, per_node)


def test_who_is_not_run_puts_in_what_the_one_before_does() -> None:
    are_run = [False, True, False, False, True, False]
    assert [speaker_for(place, are_run) for place in range(6)] == [1, 1, 1, 1, 4, 4]


@dataclasses.dataclass
class Plan:
    items: list[int]


class Planner:
    def create_global_plan(self, plans: list[Plan]) -> list[list[int]]:
        return [plan.items for plan in plans]


@pytest.mark.parametrize(
    ("plans", "written"), [(4, [[0], [], [], [3]]), (2, [[0], [1]])], ids=["of all", "of some"]
)
def test_a_sharded_checkpoint_is_left_to_those_who_are_run(
    plans: int, written: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GHOSTGPU_RUN_RANKS", "0,3")
    module: Any = ModuleType("torch.distributed.checkpoint.default_planner")
    module.DefaultSavePlanner = type("DefaultSavePlanner", (Planner,), {})
    module._validate_global_plan = lambda *arguments: False
    distributed = SimpleNamespace(get_world_size=lambda: 4)
    AbsentRanks(SimpleNamespace(distributed=distributed)).after_import(module)
    planner = module.DefaultSavePlanner()
    assert planner.create_global_plan([Plan([rank]) for rank in range(plans)]) == written
    assert module._validate_global_plan()
