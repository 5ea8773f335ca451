"""Loops that wait for a value: `while loss > 0.01`, rejection sampling, text until its end.

Values on the card never change, so a loop that waits for one to change would never end. If the end
of a `while` loop depends on an unknown value and the loop has been reading it for some time, the
loop first gets other values: a real run ends with one of them, too. If none ends it, the script is
ended, and the answer names the line.

Whether the end of a loop depends on a line follows from the script's source: the line is part of
the loop's condition or of a condition for `break` or `return`, or what it assigns is used there.
"""

from __future__ import annotations

import ast
import linecache
import os
import sys
import time
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from .report import RECORD
from .stacks import is_user_code
from .steps import RehearsalComplete

OTHERS_AFTER_SECONDS = 5.0
"""How long a loop may read the same ordinary value before it gets others."""

ENDS_AFTER_SECONDS = 30.0
"""How long until the script is ended."""

LEAST_READS = 100

_OTHERS = (0.0, 1.0, 1e9, -1.0)
"""Values that are tried in turn if the ordinary one does not end a loop."""


@dataclass
class _Reading:
    """Reads of a value at one line, in one call of its function."""

    frame: int
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

    def other_value(self, value: Any) -> Any:
        """What an unknown value reads as: `value`, or another one if a loop waits for it."""
        frame = _users_frame()
        if frame is None:
            return value
        code, line = frame.f_code, frame.f_lineno
        place = (code.co_filename, line)
        reading = self._readings.get(place)
        if reading is None or reading.frame != id(frame):
            reading = self._readings[place] = _Reading(id(frame), RECORD.report.steps)
        reading.count += 1
        if reading.count < LEAST_READS or reading.waits is False:
            return value
        seconds = time.monotonic() - reading.since
        if seconds < OTHERS_AFTER_SECONDS:
            return value
        if reading.waits is None:
            reading.waits, reading.is_inside_another = loop_depends_on(*place)
            if not reading.waits:
                return value
        name = f"{os.path.basename(code.co_filename)}:{line}"
        goes_on = reading.is_inside_another and RECORD.report.steps > reading.steps
        if seconds > ENDS_AFTER_SECONDS and not goes_on:
            RECORD.report.waits_at = name
            raise RehearsalComplete
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


def _users_frame() -> FrameType | None:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_user_code(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


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
    used = {it.id for each in conditions for it in ast.walk(each) if isinstance(it, ast.Name)}
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


def _names_made_at(loop: ast.While, line: int) -> set[str]:
    """Names that are assigned at a line, or from such names."""
    made: set[str] = set()
    assignments = [
        each
        for each in ast.walk(loop)
        if isinstance(each, (ast.Assign, ast.AugAssign, ast.AnnAssign))
    ]
    for _ in range(len(assignments) + 1):
        before = len(made)
        for each in assignments:
            value = each.value
            used = {it.id for it in ast.walk(value) if isinstance(it, ast.Name)} if value else set()
            if _spans(each, line) or not used.isdisjoint(made):
                targets = each.targets if isinstance(each, ast.Assign) else [each.target]
                made.update(
                    it.id for t in targets for it in ast.walk(t) if isinstance(it, ast.Name)
                )
        if len(made) == before:
            break
    return made
