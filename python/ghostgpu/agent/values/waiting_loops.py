"""Loops that wait for a value: `while loss > 0.01`, rejection sampling, text until its end.

Values on the card never change, so a loop that waits for one to change would never end. If the end
of a `while` loop depends on an unknown value and the loop has been reading it for some time, the
loop first gets other values: a real run ends with one of them, too. If none ends it, the script is
ended, and the answer names the line.

The loop may be the script's or that of a library which the script has called: samplers of
`torch.distributions` reject until all elements are accepted.

Whether the end of a loop depends on a line follows from the source: the line is part of the loop's
condition or of a condition for `break` or `return`, or what is assigned there, or under a condition
there, is used in one of these.
"""

from __future__ import annotations

import ast
import functools
import linecache
import os
import sys
import time
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from ..own_frames import AGENT_FOLDER
from ..report import RECORD
from ..stacks import is_user_code
from ..steps import RehearsalComplete

OTHERS_AFTER_SECONDS = 5.0
"""How long a loop may read the same ordinary value before it gets others."""

ENDS_AFTER_SECONDS = 30.0
"""How long until the script is ended."""

LEAST_READS = 100

_OTHERS = (0.0, 1.0, 1e9, -1.0)
"""Values that are tried in turn if the ordinary one does not end a loop."""


MOST_LIBRARY_FRAMES = 12
"""How far from a read a library's loop is looked for."""


class _Call:
    """Marks one call of a function. Its frame's address is often that of the next call's frame."""

    def __call__(self, frame: FrameType, event: str, argument: Any) -> _Call:
        """Do nothing where a debugger, switched on later, takes the mark for its own function."""
        return self


@dataclass
class _Reading:
    """Reads of a value at one line, in one call of its function."""

    call: object
    steps: int
    since: float = field(default_factory=time.monotonic)
    count: int = 0
    waits: bool | None = None
    """Whether the end of a loop depends on the line; None until that is checked."""
    is_inside_another: bool = False


class WaitingLoops:
    """Detects a script that reads the same value again and again, waiting for another."""

    def __init__(self) -> None:
        self._readings: dict[tuple[str, int], _Reading] = {}
        self._lines_given_others: dict[str, None] = {}
        self._waiting: set[tuple[str, int]] = set()
        """Places that have been found to wait, where the next loop need not take as long."""

    def other_value(self, value: Any) -> Any:
        """What an unknown value reads as: `value`, or another one if a loop waits for it."""
        frames = _frames_to_the_users()
        if not frames or self._reading(frames[-1]).count < LEAST_READS:
            return value
        for frame in reversed(frames):
            place = _place(frame)
            reading = self._readings[place] if frame is frames[-1] else self._reading(frame)
            if self._waits(place, reading, is_in_library=frame is not frames[-1]):
                return self._other(value, reading, place, frames[-1])
        return value

    def _reading(self, frame: FrameType) -> _Reading:
        """The reads at a frame's line so far, with this one."""
        place, call = _place(frame), _call_of(frame)
        reading = self._readings.get(place)
        if reading is None or reading.call != call:
            reading = self._readings[place] = _Reading(call, RECORD.report.steps)
        reading.count += 1
        return reading

    def _waits(self, place: tuple[str, int], reading: _Reading, *, is_in_library: bool) -> bool:
        if reading.count < LEAST_READS or reading.waits is False:
            return False
        seconds = time.monotonic() - reading.since
        if seconds < OTHERS_AFTER_SECONDS and place not in self._waiting:
            return False
        # A framework's own training loop goes on.
        if is_in_library and RECORD.report.steps > reading.steps:
            return False
        if reading.waits is None:
            reading.waits, reading.is_inside_another = loop_depends_on(*place)
        return reading.waits

    def _other(
        self, value: Any, reading: _Reading, place: tuple[str, int], users: FrameType
    ) -> Any:
        name = f"{os.path.basename(users.f_code.co_filename)}:{users.f_lineno}"
        goes_on = reading.is_inside_another and RECORD.report.steps > reading.steps
        if time.monotonic() - reading.since > ENDS_AFTER_SECONDS and not goes_on:
            RECORD.report.waits_at = name
            raise RehearsalComplete
        self._waiting.add(place)
        self._lines_given_others[name] = None
        if isinstance(value, bool):
            return not value
        return type(value)(_OTHERS[reading.count % len(_OTHERS)])

    def tell(self) -> None:
        """Say in the report which loops were given other values."""
        for name in self._lines_given_others:
            if name != RECORD.report.waits_at:
                RECORD.assume(
                    f"{name}: the loop is assumed to end by a value that only a real card computes"
                )


def _frames_to_the_users() -> list[FrameType]:
    """The frames between a read and the script's innermost frame, which is the last; none if that
    is too far away."""
    frames: list[FrameType] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if is_user_code(file):
            return [*frames[:MOST_LIBRARY_FRAMES], frame]
        if not file.startswith(AGENT_FOLDER):
            frames.append(frame)
        frame = frame.f_back
    return []


def _place(frame: FrameType) -> tuple[str, int]:
    return frame.f_code.co_filename, frame.f_lineno


def _call_of(frame: FrameType) -> object:
    """What is equal only for the same call of a function."""
    mark = frame.f_trace
    if mark is None:
        mark = frame.f_trace = _Call()
    return mark if isinstance(mark, _Call) else id(frame)


@functools.cache
def loop_depends_on(file: str, line: int) -> tuple[bool, bool]:
    """Whether the end of the `while` loop around a line depends on that line, and whether that loop
    is inside another one of the same function."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return False, False
    loops = [each for each in _around(tree, line) if isinstance(each, (ast.While, ast.For))]
    whiles = [each for each in loops if isinstance(each, ast.While)]
    if not whiles:
        return False, False
    loop = whiles[-1]
    conditions = [loop.test, *_conditions_of_ends(loop)]
    if any(_spans(each, line) for each in conditions):
        return True, len(loops) > 1
    names = _names_made_at(loop, line)
    used = {name for each in conditions for name in _names(each)}
    return not names.isdisjoint(used), len(loops) > 1


def _around(tree: ast.AST, line: int) -> list[ast.AST]:
    """The nodes around a line in its function, outermost first."""
    found: list[ast.AST] = []
    node: ast.AST | None = tree
    while node is not None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            found = []
        found.append(node)
        children = ast.iter_child_nodes(node)
        node = next((each for each in children if _spans(each, line)), None)
    return found


def _spans(node: ast.AST, line: int) -> bool:
    first, last = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
    return first is not None and last is not None and first <= line <= last


def _conditions_of_ends(loop: ast.While) -> list[ast.expr]:
    return [
        each.test
        for each in ast.walk(loop)
        if isinstance(each, ast.If)
        and any(isinstance(inner, (ast.Break, ast.Return)) for inner in ast.walk(each))
    ]


def _names(node: ast.AST) -> set[str]:
    return {it.id for it in ast.walk(node) if isinstance(it, ast.Name)}


def _names_made_at(loop: ast.While, line: int) -> set[str]:
    """Names that are assigned at a line, from such names, or where a condition with these holds."""
    made: set[str] = set()
    assignments = [
        each
        for each in ast.walk(loop)
        if isinstance(each, (ast.Assign, ast.AugAssign, ast.AnnAssign))
    ]
    branches = [each for each in ast.walk(loop) if isinstance(each, (ast.If, ast.While))]
    for _ in range(len(assignments) + 1):
        before = len(made)
        decided = {
            inner
            for branch in branches
            if branch is not loop
            and (_spans(branch.test, line) or not _names(branch.test).isdisjoint(made))
            for inner in ast.walk(branch)
        }
        for each in assignments:
            used = _names(each.value) if each.value else set()
            if _spans(each, line) or each in decided or not used.isdisjoint(made):
                targets = each.targets if isinstance(each, ast.Assign) else [each.target]
                made.update(
                    it.id for t in targets for it in ast.walk(t) if isinstance(it, ast.Name)
                )
        if len(made) == before:
            break
    return made
