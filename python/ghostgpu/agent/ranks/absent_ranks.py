"""Ranks of a job that are not run: present in the store, and silent.

A job of a thousand ranks is rehearsed with a few of them. Each of these believes in all the others:
its groups have the job's own sizes, and so have its shards. Three things would wait for a rank that
nobody started, and are told who is missing:

* NCCL. The first rank of a group puts the id of its communicator into the store; where that one is
  not run, an id is put there for it. The stand-in library asks who of a group is run, by the id.
* Gloo, which connects every rank with every other. A group with absent ranks is given a connection
  to nobody, and what goes through it on the host passes through files (see `collectives`).
* Barriers that count keys in the store.

So would a sharded checkpoint (`torch.distributed.checkpoint`): it has the shards of those who are
run, each written by whoever has it.

What an absent rank would have put into a collective is taken to be what the one before it puts in
that is run: all ranks come to the same, and the library does as we do.

A job that `torchrun` itself started on several machines is another case. Its other ranks are run
elsewhere: store and Gloo reach them, and known values pass through the store. Only the library
cannot, and is told not to wait for them.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Callable

from .. import preload
from ..guard import quietly

RUN_RANKS_VARIABLE = "GHOSTGPU_RUN_RANKS"
"""Which ranks of the job are run, in ascending order: set by our launcher."""

_ID_BYTES = 128
"""`NCCL_UNIQUE_ID_BYTES`."""

_COMMUNICATORS = 4
"""One for each card that a process uses in a group: hardly ever more than one."""


def run_ranks() -> list[int] | None:
    """The ranks that are run, if not all of them are."""
    text = os.environ.get(RUN_RANKS_VARIABLE)
    return [int(rank) for rank in text.split(",")] if text else None


def ranks_of_this_machine() -> list[int] | None:
    """The ranks that `torchrun` has started here, if it has started others on other machines."""
    names = ("RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "WORLD_SIZE", "GROUP_RANK")
    try:
        rank, local_rank, here, everywhere, _ = (int(os.environ[name]) for name in names)
    except (KeyError, ValueError):
        return None
    if RUN_RANKS_VARIABLE in os.environ or here >= everywhere:
        return None
    return list(range(rank - local_rank, rank - local_rank + here))


def speaker_for(place: int, are_run: list[bool]) -> int:
    """Whose values stand for those of a member: the nearest before it that is run, or after it."""
    nearest: list[int] = [*range(place, -1, -1), *range(place + 1, len(are_run))]
    for other in nearest:
        if are_run[other]:
            return other
    return place


@dataclass
class _Group:
    """A group with members that are not run."""

    store: Any
    are_run: list[bool]
    color: int | None
    keys: dict[str, list[bool]] = field(default_factory=dict)
    """Where ids of communicators may be in the store, and who of those is run."""


class AbsentRanks:
    """Knows who is run, and lets the others be missing without anybody waiting for them."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        here = ranks_of_this_machine()
        self._others_are_elsewhere = here is not None
        run = run_ranks() if here is None else here
        self._run = frozenset(run) if run is not None else None
        self._groups: list[_Group] = []
        self._by_name: dict[str, _Group] = {}
        self._members: list[int] | None = None
        """Those of the group that is being made; None for a group of all."""

    def install(self) -> None:
        """Stand where process groups are made, if any rank is missing."""
        if self._run is None or not self._torch.distributed.is_available():
            return
        from torch.distributed import distributed_c10d

        module: Any = distributed_c10d
        bindings = self._torch._C._distributed_c10d
        makers = {"ProcessGroupNCCL": self._nccl}
        if not self._others_are_elsewhere:
            makers["ProcessGroupGloo"] = self._gloo
            # Those who are not run would never be counted.
            module._store_based_barrier = lambda *arguments, **options: None
        # A build may have one of the two only.
        for name, make in makers.items():
            backend = getattr(bindings, name, None)
            if backend is not None:
                backend.__init__ = make(backend.__init__)
        module._new_process_group_helper = self._made_with_members(module._new_process_group_helper)
        preload.set_members_callback(quietly(self._who_is_run))

    def after_import(self, module: ModuleType) -> None:
        """Have a sharded checkpoint consist of what those who are run write."""
        is_planner = module.__name__ == "torch.distributed.checkpoint.default_planner"
        if not is_planner or self._run is None or self._others_are_elsewhere:
            return
        planner: Any = module
        # It would miss the shards of all the others.
        planner._validate_global_plan = lambda *arguments: True
        saver = planner.DefaultSavePlanner
        saver.create_global_plan = self._without_absent(saver.create_global_plan)

    def _without_absent(self, original: Callable[..., Any]) -> Callable[..., Any]:
        drop = quietly(self._drop_absent)

        @functools.wraps(original)
        def create_global_plan(planner: Any, all_plans: list[Any]) -> Any:
            return original(planner, drop(all_plans) or all_plans)

        return create_global_plan

    def _drop_absent(self, plans: list[Any]) -> list[Any]:
        """What an absent rank would write is what another one does, and would be left to it."""
        are_run = self._mask(range(len(plans))) or []
        if len(plans) != self._torch.distributed.get_world_size():
            return plans
        return [
            plan if is_run else dataclasses.replace(plan, items=[])
            for plan, is_run in zip(plans, are_run)
        ]

    def _made_with_members(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def make(size: int, rank: int, members: Any, *others: Any, **named: Any) -> Any:
            before = len(self._groups)
            self._members = list(members) or None
            try:
                made = original(size, rank, members, *others, **named)
            finally:
                self._members = None
            name = str(getattr(made[0], "group_name", ""))
            for group in self._groups[before:]:
                self._by_name[name] = group
            return made

        return make

    def are_run(self, group: Any) -> list[bool] | None:
        """Which members of a process group are run, in their order; None if all of them are."""
        return None if self._others_are_elsewhere else self._members_run(group)

    def are_here(self, group: Any) -> list[bool] | None:
        """Which members this machine runs, in their order; None if no other one runs any."""
        return self._members_run(group) if self._others_are_elsewhere else None

    def _members_run(self, group: Any) -> list[bool] | None:
        if self._run is None:
            return None
        from torch.distributed import distributed_c10d

        known = distributed_c10d._world.pg_group_ranks.get(group)
        members = sorted(known, key=known.__getitem__) if known else range(group.size())
        return self._mask(members)

    def _mask(self, members: Any) -> list[bool] | None:
        assert self._run is not None
        are_run = [rank in self._run for rank in members]
        return None if all(are_run) else are_run

    def _nccl(self, original: Callable[..., None]) -> Callable[..., None]:
        register = quietly(self._register)

        @functools.wraps(original)
        def made(
            backend: Any, store: Any, rank: int, size: int, *others: Any, **named: Any
        ) -> None:
            register(store, size)
            original(backend, store, rank, size, *others, **named)

        return made

    def _register(self, store: Any, size: int) -> None:
        members = self._members or list(range(size))
        are_run = self._mask(members)
        if are_run is None:
            return
        from torch.distributed import distributed_c10d

        color = getattr(distributed_c10d, "_process_group_color", None)
        group = _Group(store, are_run, color(members) if color is not None else None)
        for number in range(_COMMUNICATORS):
            self._expect(group, str(number), are_run)
        self._groups.append(group)

    def _expect(self, group: _Group, key: str, are_run: list[bool]) -> None:
        """Ids are looked for under this key; put one there if nobody else will."""
        group.keys[key] = are_run
        if not are_run[0] and not self._others_are_elsewhere:
            # Whoever comes first is right: all others find it there.
            group.store.compare_set(key, "", os.urandom(_ID_BYTES // 2).hex())

    def expect_message(self, group: Any, rank: int, peer: int) -> None:
        """Two members of a group are about to make a communicator of their own, for messages."""
        known = self._by_name.get(str(group.group_name))
        if known is None or rank == peer or not 0 <= peer < len(known.are_run):
            return
        low, high = sorted((rank, peer))
        key = f"{low}:{high}"
        if key not in known.keys:
            self._expect(known, key, [known.are_run[low], known.are_run[high]])

    def _who_is_run(self, id_bytes: bytes | None, color: int) -> list[bool] | None:
        """The library makes a communicator with this id, or splits one by this colour."""
        for group in reversed(self._groups):
            if id_bytes is None:
                if group.color == color:
                    return group.are_run
                continue
            for key, are_run in group.keys.items():
                if group.store.check([key]) and bytes(group.store.get(key)) == id_bytes:
                    return are_run
        return None

    def _gloo(self, original: Callable[..., None]) -> Callable[..., None]:
        hash_store = self._torch.distributed.HashStore

        @functools.wraps(original)
        def made(
            backend: Any, store: Any, rank: int, size: int, *others: Any, **named: Any
        ) -> None:
            if self._mask(self._members or range(size)) is not None:
                # Alone: nobody is connected with anybody.
                store, rank, size = hash_store(), 0, 1
            original(backend, store, rank, size, *others, **named)

        return made
