"""Ranks that `torchrun` runs on other machines: who they are, and what the store tells of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ghostgpu.agent.ranks import rank_values
from ghostgpu.agent.ranks.absent_ranks import RUN_RANKS_VARIABLE, ranks_of_this_machine
from ghostgpu.agent.ranks.rank_values import LEFT_KEY, RankValues


class Store:
    """A store of PyTorch's, as far as values need it."""

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}

    def set(self, key: str, value: bytes) -> None:
        self.content[key] = value

    def get(self, key: str) -> bytes:
        return self.content[key]

    def check(self, keys: list[str]) -> bool:
        return all(key in self.content for key in keys)

    def delete_key(self, key: str) -> None:
        del self.content[key]


@pytest.mark.parametrize(
    ("variables", "ranks"),
    [
        (
            {"RANK": "5", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4", "WORLD_SIZE": "8"},
            [4, 5, 6, 7],
        ),
        ({"RANK": "1", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4", "WORLD_SIZE": "4"}, None),
        ({"RANK": "1", "WORLD_SIZE": "4"}, None),
    ],
)
def test_the_ranks_of_a_machine_follow_from_what_torchrun_says(
    variables: dict[str, str], ranks: list[int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE", RUN_RANKS_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    for name, value in {**variables, "GROUP_RANK": "1"}.items():
        monkeypatch.setenv(name, value)
    assert ranks_of_this_machine() == ranks
    # Our own launcher has started all ranks that are run, on this machine.
    monkeypatch.setenv(RUN_RANKS_VARIABLE, "0,5")
    assert ranks_of_this_machine() is None


def test_values_reach_another_machine_until_its_ranks_have_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store()
    here, there = (
        RankValues(str(tmp_path / name), lambda: None, store=lambda: store).channel("group", rank)
        for rank, name in enumerate(("here", "there"))
    )
    for number in range(100):
        there.post_elsewhere(number, [b"%d" % number, None])
    assert here.fetch_from_elsewhere(1, 99) == [b"99", None]
    assert len(store.content) <= 64, "old calls do not stay in the store"
    store.set(LEFT_KEY, b"yes")
    assert here.fetch_from_elsewhere(1, 100) == []
    del store.content[LEFT_KEY]
    monkeypatch.setattr(rank_values, "ELSEWHERE_PATIENCE_SECONDS", 0.05)
    assert here.fetch_from_elsewhere(1, 100) == []
