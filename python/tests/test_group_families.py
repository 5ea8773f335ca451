"""How groups come together to families, and how large the parts of parameters are."""

from __future__ import annotations

import pytest

from ghostgpu.agent.ranks.group_families import (
    add_group,
    classes,
    coordinates_of,
    local_size,
    part_of,
)
from ghostgpu.agent.report import GroupFamily


def families_of(*groups: list[int]) -> list[list[list[int]]]:
    families: list[GroupFamily] = []
    for group in groups:
        add_group(families, group)
    return [family.groups for family in families]


def test_groups_along_one_dimension_of_a_mesh_are_a_family() -> None:
    world = [0, 1, 2, 3]
    assert families_of(world, [0, 2], [1, 3], [0, 1], [2, 3], [1, 3], [3, 2]) == [
        [world],
        [[0, 2], [1, 3]],
        [[0, 1], [2, 3]],
    ]


def test_a_message_marks_the_family_of_its_group() -> None:
    families: list[GroupFamily] = []
    for group in ([0, 1, 2, 3], [0, 2], [1, 3], [0, 1], [2, 3]):
        add_group(families, group)
    add_group(families, [1, 3]).has_messages = True
    assert [family.has_messages for family in families] == [False, True, False]


@pytest.mark.parametrize(
    ("size", "parts", "expected"),
    [(8, 4, [2, 2, 2, 2]), (10, 4, [3, 3, 3, 1]), (5, 4, [2, 2, 1, 0]), (1, 3, [1, 0, 0])],
)
def test_parts_are_those_of_chunks(size: int, parts: int, expected: list[int]) -> None:
    assert [part_of(size, parts, place) for place in range(parts)] == expected


def test_a_parameter_that_is_spread_over_two_dimensions_is_cut_twice() -> None:
    # Copied along the first dimension of the mesh, cut along the second and the third.
    sharded = [(-1, 2), (0, 4), (0, 2)]
    assert local_size((10, 7), sharded, (1, 0, 1)) == (1, 7)
    assert local_size((10, 7), sharded, (0, 3, 0)) == (1, 7)
    assert local_size((10, 7), sharded, (0, 3, 1)) == (0, 7)


def test_ranks_of_other_stages_have_places_in_meshes_of_their_own() -> None:
    families: list[GroupFamily] = []
    # Two stages of two by two: the groups along the stages, along rows and along columns.
    for group in ([0, 4], [1, 5], [2, 6], [3, 7]):
        add_group(families, group)
    for group in ([0, 2], [1, 3], [4, 6], [5, 7], [0, 1], [2, 3], [4, 5], [6, 7]):
        add_group(families, group)
    expected = {rank: (rank % 4 // 2, rank % 2) for rank in range(8)}
    assert coordinates_of([[4, 5], [6, 7]], own=6, families=families) == expected
    # Of one row alone, all others have places too.
    assert coordinates_of([6, 7], own=6, families=families) == {r: (r % 2,) for r in range(8)}
    # Nothing is known of those for whom no such group was made.
    assert coordinates_of([6, 7], own=6, families=[]) == {6: (0,), 7: (1,)}


def test_ranks_of_one_class_have_the_same_sizes() -> None:
    assert classes([(3,), (3,), (1,), (3,), (1,)]) == [0, 0, 2, 0, 2]
