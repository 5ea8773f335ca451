"""When a rehearsal waits for NCCL's watchdog to let go of the first gradient buckets."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ghostgpu.agent.ranks.rebuilt_buckets import PATIENCE_S, RebuiltBuckets


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds of every wait, none of which takes any time."""
    made: list[float] = []
    monkeypatch.setattr("ghostgpu.agent.ranks.rebuilt_buckets.time.sleep", made.append)
    return made


def made_up_torch() -> SimpleNamespace:
    """A torch with a reducer that counts its calls, and a card in use."""

    class Reducer:
        prepared = rebuilt = 0

        def prepare_for_backward(self, outputs: object) -> None:
            self.prepared += 1

        def _rebuild_buckets(self) -> bool:
            self.rebuilt += 1
            return self.prepared == 1

    cuda = SimpleNamespace(
        is_initialized=lambda: True, synchronize=lambda: None, current_device=lambda: 0
    )
    allocated = iter(range(0, 1 << 40, 5 << 20))
    bindings = SimpleNamespace(
        _distributed_c10d=SimpleNamespace(Reducer=Reducer),
        _cuda_memoryStats=lambda _: {"allocated_bytes": {"all": {"allocated": next(allocated)}}},
    )
    return SimpleNamespace(_C=bindings, cuda=cuda)


def test_only_the_forward_pass_after_the_first_exchange_of_gradients_waits(
    waits: list[float],
) -> None:
    torch = made_up_torch()
    RebuiltBuckets(torch).install()
    reducer = torch._C._distributed_c10d.Reducer()
    # Two passes that accumulate gradients come first: nothing is exchanged in them.
    for _ in range(2):
        assert not reducer._rebuild_buckets()
    assert waits == []
    reducer.prepare_for_backward([])
    assert reducer._rebuild_buckets()
    assert waits == [PATIENCE_S]
    for _ in range(3):
        reducer.prepare_for_backward([])
        reducer._rebuild_buckets()
    assert waits == [PATIENCE_S]
    assert (reducer.prepared, reducer.rebuilt) == (4, 6)


def test_where_the_watchdog_can_be_asked_nobody_sleeps_and_the_answer_says_what_timing_decides(
    waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    assumptions: list[str] = []
    monkeypatch.setattr("ghostgpu.agent.ranks.rebuilt_buckets.RECORD.assume", assumptions.append)
    torch = made_up_torch()
    asked: list[str] = []
    group = SimpleNamespace(_wait_for_pending_works=lambda: asked.append("group"))
    world = SimpleNamespace(pg_map=[group])
    torch.distributed = SimpleNamespace(distributed_c10d=SimpleNamespace(_world=world))
    RebuiltBuckets(torch).install()
    reducer = torch._C._distributed_c10d.Reducer()
    reducer.prepare_for_backward([])
    reducer._rebuild_buckets()
    assert (waits, asked) == ([], ["group"])
    (sentence,) = assumptions
    assert sentence.endswith("a card may hold both for a while (5.00 MiB more)")


@pytest.mark.parametrize(
    ("rebuilds_in", "has_hook", "waits_in"),
    [(3, False, [2, 3]), (9, False, [2, 3, 4]), (2, True, [2, 3, 4, 5])],
)
def test_passes_wait_until_buckets_are_new_and_always_with_a_hook(
    waits: list[float], rebuilds_in: int, has_hook: bool, waits_in: list[int]
) -> None:
    torch = made_up_torch()
    torch.distributed = SimpleNamespace(_register_comm_hook=lambda reducer, state, hook: None)
    reducers = torch._C._distributed_c10d.Reducer
    number = 0
    reducers._rebuild_buckets = lambda _: number == rebuilds_in
    RebuiltBuckets(torch).install()
    reducer = reducers()
    if has_hook:
        torch.distributed._register_comm_hook(reducer, None, print)
    waited_in = []
    for number in range(1, 6):
        before = len(waits)
        reducer._rebuild_buckets()
        waited_in += [number] * (len(waits) - before)
        reducer.prepare_for_backward([])
    assert waited_in == waits_in


def test_each_model_waits_for_its_own_buckets(waits: list[float]) -> None:
    torch = made_up_torch()
    RebuiltBuckets(torch).install()
    for reducer in (torch._C._distributed_c10d.Reducer() for _ in range(2)):
        reducer.prepare_for_backward([])
        reducer._rebuild_buckets()
    assert waits == [PATIENCE_S, PATIENCE_S]


def test_a_build_without_distributed_training_is_left_alone() -> None:
    RebuiltBuckets(SimpleNamespace(_C=SimpleNamespace())).install()
