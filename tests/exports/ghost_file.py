"""A second reader of `.ghost` files, from the description in `crates/recording/src/file`."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Callable, NamedTuple, Optional, TypeVar

T = TypeVar("T")

CATEGORIES = [
    "parameter",
    "buffer",
    "gradient",
    "optimizer_state",
    "activation",
    "input",
    "workspace",
    "kept",
    "temporary",
    "unknown",
    "gathered",
    "communication",
]
"""By their numbers in a file; only snapshots have what is unknown."""
STAGES = ["script", "moving", "forward", "backward", "optimizer_step", "zero_grad", "evaluation"]
STAGE_TITLES = {
    "moving": "moving the model",
    "optimizer_step": "optimizer step",
}
OWNERS = ["user", "package", "torch", "native"]
ALLOCATE, FREE, RESERVE, RELEASE, OUT_OF_MEMORY, FREE_REQUESTED, OTHER = range(7)


class Frame(NamedTuple):
    """A frame of a Python stack."""

    file: str
    line: int
    function: str
    owner: str


@dataclass
class Allocation:
    """A block, with its names in full."""

    address: int
    requested: int = 0
    block: int = 0
    category: str = ""
    name: str = ""
    module: str = ""
    operator: str = ""
    stack: tuple[Frame, ...] = ()
    allocated_at: Optional[int] = None
    freed_at: Optional[int] = None

    def is_live(self, event: int) -> bool:
        """After this event."""
        begun = self.allocated_at is None or self.allocated_at <= event
        return begun and (self.freed_at is None or self.freed_at > event)


class Phase(NamedTuple):
    """A stage and where it begins."""

    stage: str
    step: int
    first_event: int


@dataclass
class Card:
    """What happened on one card."""

    index: int
    outside: int
    reserved_before: list[tuple[int, int]]
    allocations: list[Allocation]
    kinds: list[int]
    ids: dict[int, int]
    changes: dict[int, tuple[int, int]]
    failed: dict[int, int]
    times_us: list[int]
    phases: list[Phase]

    def phase(self, event: int) -> Phase:
        return [each for each in self.phases if each.first_event <= event][-1]


@dataclass
class Recording:
    """A whole file."""

    command: list[str] = field(default_factory=list)
    gpu_total_bytes: int = 0
    warnings: list[str] = field(default_factory=list)
    cards: list[Card] = field(default_factory=list)
    failed_steps: Optional[int] = None
    failed_cards: list[Card] = field(default_factory=list)
    """Of the run that ran out of memory, where `cards` are of a later one."""


class Values:
    """The values of one section."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def number(self) -> int:
        value, shift = 0, 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def pair(self) -> tuple[int, int]:
        return self.number(), self.number()

    def difference(self) -> int:
        value = self.number()
        return -(value + 1) // 2 if value & 1 else value // 2

    def text(self) -> str:
        length = self.number()
        self.at += length
        return self.data[self.at - length : self.at].decode()

    def several(self, value: Callable[[], T]) -> list[T]:
        return [value() for _ in range(self.number())]

    def running(self, count: int) -> list[int]:
        values, last = [], 0
        for _ in range(count):
            last = (last + self.difference()) % 2**64
            values.append(last)
        return values


def read_ghost(path: Path) -> Recording:
    data = path.read_bytes()
    assert data[:8] == b"\x89ghost\r\n" and data[8] in (2, 3, 4) and data[9:12] == b"\0\0\0"
    recording, at = Recording(), 12
    names: tuple[list[str], list[str], list[str], list[tuple[Frame, ...]]] = ([], [], [], [])
    while True:
        kind, length = data[at], int.from_bytes(data[at + 1 : at + 9], "little")
        values = Values(zlib.decompress(data[at + 9 : at + 9 + length]))
        at += 9 + length
        if kind == 1:
            recording.command = values.several(values.text)
            for _ in range(5):
                values.text()
            assert values.byte() == 0, "a recording of a rehearsal"
            recording.gpu_total_bytes = values.number()
            values.number()
            recording.warnings = values.several(values.text)
        elif kind == 2:
            names = read_names(values)
        elif kind == 3:
            recording.cards.append(read_card(values, *names))
        elif kind == 5:
            assert data[8] >= 3
            recording.failed_steps = values.number()
            recording.failed_cards = values.several(partial(read_card, values, *names))
        elif kind == 6:
            assert data[8] == 4
            values.several(values.pair)
        else:
            assert (kind, at) == (4, len(data))
            return recording
        assert values.at == len(values.data)


def read_names(
    values: Values,
) -> tuple[list[str], list[str], list[str], list[tuple[Frame, ...]]]:
    texts = values.several(values.text)
    operators = values.several(values.text)
    read = values.several(lambda: (values.text(), values.text(), values.number()))
    modules = [path for path, *_ in read]
    frames = values.several(
        lambda: Frame(values.text(), values.number(), values.text(), OWNERS[values.byte()])
    )
    stacks = values.several(lambda: tuple(frames[at] for at in values.running(values.number())))
    return texts, operators, modules, stacks


def read_card(
    values: Values,
    texts: list[str],
    operators: list[str],
    modules: list[str],
    stacks: list[tuple[Frame, ...]],
) -> Card:
    def segments(count: int) -> list[tuple[int, int]]:
        found, address = [], 0
        for _ in range(count):
            address += values.difference()
            found.append((address, values.number()))
            assert values.number() < len(pools) and values.byte() < 4
        return found

    def maybe() -> Optional[int]:
        return values.number() if values.byte() else None

    def pool() -> tuple[int, Optional[tuple[int, int]]]:
        stream = values.number()
        return stream, (values.number(), values.number()) if values.byte() else None

    index, outside = values.number(), values.number()
    pools = values.several(pool)
    before = segments(values.number())
    allocations = [Allocation(address) for address in values.running(values.number())]
    count = len(allocations)
    for each in allocations:
        each.requested = values.number()
    for each in allocations:
        each.block = each.requested + values.number()
    for each in allocations:
        each.category = CATEGORIES[values.byte()]
    for each, number in zip(allocations, values.running(count)):
        each.name = texts[number]
    for each, number in zip(allocations, values.running(count)):
        each.module = modules[number]
    for each, number in zip(allocations, values.running(count)):
        each.operator = operators[number]
    for each, number in zip(allocations, values.running(count)):
        each.stack = stacks[number]
    assert all(number < len(pools) for number in values.running(count))
    kinds = values.several(values.byte)
    ids, expected = {}, 0
    for at in (at for at, kind in enumerate(kinds) if kind == ALLOCATE):
        ids[at] = expected + values.difference()
        expected = ids[at] + 1
        allocations[ids[at]].allocated_at = at
    newest = 0
    for at, kind in enumerate(kinds):
        if kind == ALLOCATE:
            newest = ids[at]
        elif kind in (FREE, FREE_REQUESTED):
            ids[at] = newest - values.difference()
            if kind == FREE:
                allocations[ids[at]].freed_at = at
    changing = [at for at, kind in enumerate(kinds) if kind in (RESERVE, RELEASE)]
    changes = dict(zip(changing, segments(len(changing))))
    failed = {}
    for at in (at for at, kind in enumerate(kinds) if kind == OUT_OF_MEMORY):
        failed[at] = values.number()
        maybe()
        assert values.number() < len(pools) and values.number() < len(stacks)
    values.number()
    times = values.running(len(kinds))
    phases, step, first = [], 0, 0
    for _ in range(values.number()):
        stage = STAGES[values.byte()]
        step, first = step + values.difference(), first + values.difference()
        phases.append(Phase(stage, step, first))
    for _ in range(values.number()):
        assert values.number() < len(texts)
        values.number()
        maybe()
    return Card(index, outside, before, allocations, kinds, ids, changes, failed, times, phases)


@dataclass
class Counted:
    """Sums after each event; the first is before all of them."""

    allocated: list[int]
    reserved: list[int]
    categories: dict[str, list[int]]

    @property
    def peak_event(self) -> int:
        """The first with most; -1 for before the first."""
        return self.allocated.index(max(self.allocated)) - 1


def count(card: Card) -> Counted:
    """A plain replay of a card."""
    older = [each for each in card.allocations if each.allocated_at is None]
    sums = {name: sum(e.requested for e in older if e.category == name) for name in CATEGORIES}
    allocated = sum(each.block for each in older)
    reserved = sum(size for _, size in card.reserved_before)
    counted = Counted([allocated], [reserved], {name: [sums[name]] for name in CATEGORIES})
    for at, kind in enumerate(card.kinds):
        if kind in (ALLOCATE, FREE):
            sign, each = (1 if kind == ALLOCATE else -1), card.allocations[card.ids[at]]
            allocated += sign * each.block
            sums[each.category] += sign * each.requested
        elif kind in (RESERVE, RELEASE):
            reserved += (1 if kind == RESERVE else -1) * card.changes[at][1]
        counted.allocated.append(allocated)
        counted.reserved.append(reserved)
        for name in CATEGORIES:
            counted.categories[name].append(sums[name])
    return counted
