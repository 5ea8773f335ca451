"""Which ranks of a job belong together, and how its parameters are shared out between them.

Where only some ranks are run, this says which others are like them. A job makes its groups in
families: the groups of one family have nothing in common and are equally large, as those along one
dimension of a mesh. Every rank makes all of them, its own or not. A rank's place along a dimension
is its place in its group, and the size of its part of a parameter follows from its places.
"""

from __future__ import annotations

import functools
from typing import Any, Iterable, Sequence

from ..guard import quietly
from ..report import RECORD, GroupFamily


def add_group(families: list[GroupFamily], members: Sequence[int]) -> GroupFamily:
    """Put a group into the newest family that it can belong to, or begin one with it."""
    own = sorted(members)
    for family in reversed(families):
        if own in family.groups:
            return family
    newest = families[-1] if families else None
    taken = {rank for group in newest.groups for rank in group} if newest is not None else set()
    if newest is not None and len(newest.groups[0]) == len(own) and taken.isdisjoint(own):
        newest.groups.append(own)
        return newest
    families.append(GroupFamily([own], has_messages=False))
    return families[-1]


def part_of(size: int, parts: int, place: int) -> int:
    """How much of `size` the part at a place gets, as `torch.chunk` shares it out."""
    whole = -(-size // parts)
    return max(0, min(size - whole * place, whole))


def local_size(
    shape: Sequence[int], sharded: Iterable[tuple[int, int]], coordinates: Sequence[int]
) -> tuple[int, ...]:
    """The shape of a rank's part. `sharded` has a dimension and its number of parts, or -1 for a
    copy, for each dimension of the mesh."""
    sizes = list(shape)
    for (dimension, parts), place in zip(sharded, coordinates):
        if dimension >= 0:
            sizes[dimension] = part_of(sizes[dimension], parts, place)
    return tuple(sizes)


def classes(signatures: Sequence[tuple[Any, ...]]) -> list[int]:
    """For every rank, the first that has the same signature."""
    first: dict[tuple[Any, ...], int] = {}
    return [first.setdefault(signature, rank) for rank, signature in enumerate(signatures)]


class GroupFamilies:
    """Follows the making of groups, and looks at the parameters of optimizers."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._specs: dict[Any, tuple[Any, tuple[int, ...], tuple[tuple[int, int], ...]]] = {}

    def install(self) -> None:
        """Stand where groups are made."""
        if not self._torch.distributed.is_available():
            return
        from torch.distributed import distributed_c10d

        module: Any = distributed_c10d
        helper = module._new_process_group_helper
        note = quietly(lambda members: add_group(RECORD.report.families, members))

        @functools.wraps(helper)
        def make(size: int, rank: int, members: Any, *others: Any, **named: Any) -> Any:
            note(list(members) or list(range(size)))
            return helper(size, rank, members, *others, **named)

        module._new_process_group_helper = make
        split = getattr(module, "split_group", None)
        if split is None:
            return
        note_all = quietly(self._note_split)

        @functools.wraps(split)
        def split_group(
            parent: Any = None, split_ranks: Any = None, *others: Any, **named: Any
        ) -> Any:
            note_all(parent, split_ranks)
            return split(parent, split_ranks, *others, **named)

        module.split_group = split_group
        self._torch.distributed.split_group = split_group

    def _note_split(self, parent: Any, split_ranks: Any) -> None:
        for members in split_ranks or ():
            # They are those of the parent; all of ours are splits of the whole job.
            if parent is None or parent.size() == self._torch.distributed.get_world_size():
                add_group(RECORD.report.families, members)

    def note_message(self, group: Any) -> None:
        """Members of a group send something to each other alone: each of them is another case."""
        from torch.distributed import distributed_c10d

        known = distributed_c10d._world.pg_group_ranks.get(group)
        members = list(known) if known else list(range(group.size()))
        add_group(RECORD.report.families, members).has_messages = True

    def note_optimizer(self, optimizer: Any) -> None:
        """Look at how parameters are shared out, after a step."""
        from torch.distributed.tensor import DTensor

        before = len(self._specs)
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if isinstance(parameter, DTensor):
                    self._note_spec(parameter)
        if len(self._specs) > before:
            RECORD.report.shards = self._classes()

    def _note_spec(self, parameter: Any) -> None:
        mesh = parameter.device_mesh
        sharded = tuple(
            (int(getattr(placement, "dim", -1)), int(mesh.size(dimension)))
            for dimension, placement in enumerate(parameter.placements)
        )
        shape = tuple(parameter.shape)
        ranks = mesh.mesh
        key = (tuple(ranks.shape), tuple(ranks.flatten().tolist()), shape, sharded)
        self._specs.setdefault(key, (ranks, shape, sharded))

    def _classes(self) -> list[int]:
        world = int(self._torch.distributed.get_world_size())
        own = int(self._torch.distributed.get_rank())
        families = RECORD.report.families
        signatures: list[list[Any]] = [[] for _ in range(world)]
        for ranks, shape, sharded in self._specs.values():
            coordinates = coordinates_of(ranks.tolist(), own, families)
            for rank, signature in enumerate(signatures):
                known = coordinates.get(rank)
                signature.append(None if known is None else local_size(shape, sharded, known))
        return classes([tuple(signature) for signature in signatures])


def coordinates_of(
    mesh: Any, own: int, families: Sequence[GroupFamily]
) -> dict[int, tuple[int, ...]]:
    """The coordinates of ranks in a mesh of `own`'s, or in the mesh that takes its place for them.

    A job has such a mesh in every stage of a pipeline, say, and a rank has only its own.
    """
    found = {rank: places for places, rank in _places(mesh)}
    if own not in found:
        return found
    here = found[own]
    along = []
    for dimension in range(len(here)):
        line = sorted(
            rank
            for rank, places in found.items()
            if all(place == here[other] for other, place in enumerate(places) if other != dimension)
        )
        family = next((each for each in families if line in each.groups), None)
        groups = family.groups if family is not None else [line]
        along.append({rank: place for group in groups for place, rank in enumerate(group)})
    everywhere = {
        rank: tuple(places[rank] for places in along)
        for rank in (along[0] if along else ())
        if all(rank in places for places in along)
    }
    return {**everywhere, **found}


def _places(nested: Any, before: tuple[int, ...] = ()) -> Iterable[tuple[tuple[int, ...], int]]:
    """Every rank of a mesh, with its coordinates."""
    if not isinstance(nested, list):
        yield before, int(nested)
        return
    for place, inner in enumerate(nested):
        yield from _places(inner, (*before, place))
