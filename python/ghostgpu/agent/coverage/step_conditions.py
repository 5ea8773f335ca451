"""What a training does only from, up to, or at some step, and how far away that is.

`if step > warmup:` may begin to keep outputs, unfreeze layers, or write samples. In a shortened
epoch the counter never gets there, and what the branch needs would not be seen. So the conditions
in the loop that goes through a pass are evaluated from outside, with the values that the script's
variables have between two batches. Those that increase are counters; from them follows how many
batches it takes until a condition has a value that it did not have before. Nothing of the script is
executed. Independent of torch.
"""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

from ..stacks import is_user_code
from .loop_conditions import Condition, Path, Values, conditions_at

_FARTHEST = 20_000
"""So many batches ahead are looked for a change."""


@dataclass(frozen=True)
class Ahead:
    """A condition that changes later."""

    condition: Condition
    batches: int
    """After how many more batches."""


class StepConditions:
    """The conditions in the loop at one place of the script, over all passes."""

    def __init__(self) -> None:
        self._code: CodeType | None = None
        self._conditions: list[Condition] = []
        self._paths: frozenset[Path] = frozenset()
        self._first: Values = {}
        """The values after the first batch of this pass. Those before it may be another one's."""
        self._latest: Values = {}
        self._looks = 0
        self._missed: dict[str, Condition] = {}

    def begin_pass(self) -> None:
        """Counters of batches start again."""
        self._looks = 0

    def look(self, frame: FrameType | None) -> None:
        """Called before each batch is handed on, with a frame that asked for it."""
        while frame is not None and not is_user_code(frame.f_code.co_filename):
            frame = frame.f_back
        if frame is None:
            return
        if self._code is not frame.f_code:
            self._code = frame.f_code
            self._conditions = conditions_at(frame.f_code, frame.f_lineno or 0)
            paths = (condition.paths for condition in self._conditions)
            self._paths = frozenset[Path]().union(*paths)
        if not self._conditions:
            return
        self._latest = _read(frame, self._paths)
        if self._looks == 1:
            self._first = self._latest
        self._looks += 1
        for condition in self._conditions:
            if self._looks > 1 or condition.counts_before_first:
                known = condition.holds(self._latest)
                condition.seen |= {known} - {None}

    def ahead(self) -> list[Ahead]:
        """The conditions that change with one of the next batches, the earliest first."""
        found = []
        if self._looks > 2:
            for condition in self._conditions:
                after = self._first_change(condition)
                if after is not None:
                    found.append(Ahead(condition, after))
        return sorted(found, key=lambda each: each.batches)

    def miss(self, condition: Condition) -> None:
        """The rehearsal does not go on until this one changes."""
        self._missed[str(condition)] = condition

    def missed(self) -> list[str]:
        """The conditions that have not changed, in words."""
        return [name for name, each in self._missed.items() if each.wanted - each.seen]

    def _first_change(self, condition: Condition) -> int | None:
        missing = condition.wanted - condition.seen
        counters = [path for path in condition.paths if self._increase(path) > 0]
        if not missing or len(counters) != 1 or not condition.paths <= self._latest.keys():
            return None
        counter, values = counters[0], dict(self._latest)
        # A step may take several batches, so counters of steps increase only with some of them.
        increase, batches = self._increase(counter), self._looks - 2
        for after in range(1, _FARTHEST):
            values[counter] = self._latest[counter] + after * increase // batches
            if condition.holds(values) in missing:
                return after
        return None

    def _increase(self, path: Path) -> float:
        """By how much a variable has increased in this pass."""
        if path not in self._first or path not in self._latest:
            return 0
        return self._latest[path] - self._first[path]


def _read(frame: FrameType, paths: frozenset[Path]) -> Values:
    """The numbers at these paths, as far as there are any."""
    is_function = bool(frame.f_code.co_flags & inspect.CO_OPTIMIZED)
    local = frame.f_locals
    found: dict[Path, float] = {}
    for path in paths:
        thing: Any = local.get(path[0], frame.f_globals.get(path[0]))
        for name in path[1:]:
            thing = _plain_member(thing, name)
        if type(thing) in (int, float):
            found[path] = thing
    if is_function and sys.version_info < (3, 13):
        # A copy that the frame keeps, and with it every tensor that the script lets go of.
        local.clear()
    return found


def _plain_member(thing: Any, name: str) -> Any:
    """An attribute or an item, without running code that belongs to the script."""
    if type(thing) is dict:
        return thing.get(name)
    own = getattr(thing, "__dict__", None) if _has_plain_attributes(type(thing)) else None
    return own.get(name) if type(own) is dict else None


def _has_plain_attributes(kind: type) -> bool:
    plain: tuple[object, ...] = (object.__getattribute__, type(sys).__getattribute__)
    return kind.__getattribute__ in plain
