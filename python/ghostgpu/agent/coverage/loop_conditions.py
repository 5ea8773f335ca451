"""The conditions in the body of a loop that something other than logging depends on.

Read from the script's source: names, plain attributes, items, constants and integer arithmetic. A
condition with anything else, a call above all, is left alone. Independent of torch.
"""

from __future__ import annotations

import ast
import contextlib
import linecache
import operator
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType
from typing import Any, Callable

_LOGGING = frozenset(
    {"print", "log", "debug", "info", "warning", "warn", "write", "writerow", "flush", "format"}
    | {"add_scalar", "add_scalars", "add_text", "set_postfix", "set_postfix_str", "join"}
    | {"set_description", "update", "item", "time", "perf_counter", "round", "int", "float", "str"}
    | {"len", "min", "max", "abs", "get_last_lr", "memory_allocated", "max_memory_allocated"}
    | {"get_lr", "sum", "avg", "average", "mean", "divmod", "append_log", "log_metrics", "reset"}
)
"""Functions and methods that tell somebody how a training is going."""

_RATES = frozenset({"lr", "momentum", "weight_decay", "betas"})
"""What schedules set in an optimizer's parameter groups."""

_OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}

Path = tuple[str, ...]
"""A name, and the attributes or keys that lead from it to a number."""
Values = Mapping[Path, float]


class _NotSimple(Exception):
    """An expression that cannot be evaluated without running code of the script."""


@dataclass
class Condition:
    """A comparison that a branch of the loop depends on."""

    file: str
    line: int
    text: str
    paths: frozenset[Path]
    """The variables in it."""
    value: Callable[[Values], bool]
    wanted: frozenset[bool]
    """The values with which something other than logging happens."""
    counts_before_first: bool = False
    """Whether the first batch sees the value that its counter has before it: the loop counts
    further down."""
    seen: set[bool | None] = field(default_factory=set)

    def holds(self, values: Values) -> bool | None:
        """Whether it is true with these values; None if they do not suffice."""
        try:
            return self.value(values)
        except (KeyError, ArithmeticError, TypeError):
            return None

    def __str__(self) -> str:
        return f"`{self.text}` ({os.path.basename(self.file)}:{self.line})"


def conditions_at(code: CodeType, line: int) -> list[Condition]:
    """The conditions in the body of the `for` at this line of this code."""
    # Code that calls `locals()` shares its dictionary of local variables with us (`_read`).
    tree = None if "locals" in code.co_names else _parsed(code.co_filename)
    if tree is None:
        return []
    loops = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.For) and node.lineno <= line <= (node.iter.end_lineno or 0)
    ]
    if not loops:
        return []
    # The innermost begins last.
    loop = max(loops, key=lambda node: node.lineno)
    conditions = list(_conditions_of(loop.body, code.co_filename))
    counted = list(_counted_in(loop))
    for condition in conditions:
        lines = [line for path, line in counted if path in condition.paths]
        condition.counts_before_first = bool(lines) and min(lines) > condition.line
    return conditions


def _counted_in(loop: ast.For) -> Iterator[tuple[Path, int]]:
    """The variables that a loop increases, and where."""
    for node in ast.walk(loop):
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
            with contextlib.suppress(_NotSimple):
                yield _path_of(node.target), node.lineno


@lru_cache(maxsize=16)
def _parsed(file: str) -> ast.Module | None:
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError, RecursionError):
        return None


def _conditions_of(body: list[ast.stmt], file: str) -> Iterator[Condition]:
    for place, statement in enumerate(body):
        if isinstance(statement, ast.If):
            wanted = set()
            if not all(map(_only_logs, statement.body)):
                wanted.add(True)
            leaves = isinstance(statement.body[-1], (ast.Continue, ast.Return))
            otherwise = [*statement.orelse, *(body[place + 1 :] if leaves else ())]
            if not all(map(_only_logs, otherwise)):
                wanted.add(False)
            if wanted:
                yield from _comparisons(statement.test, frozenset(wanted), file)
            yield from _conditions_of(statement.body, file)
            yield from _conditions_of(statement.orelse, file)
        elif isinstance(statement, (ast.With, ast.For, ast.While, ast.Try)):
            yield from _conditions_of(statement.body, file)


def _comparisons(test: ast.expr, wanted: frozenset[bool], file: str) -> Iterator[Condition]:
    """The single comparisons in a test: of `a and b`, both."""
    if isinstance(test, ast.BoolOp):
        for part in test.values:
            yield from _comparisons(part, wanted, file)
        return
    paths: set[Path] = set()
    try:
        value = _compiled_test(test, paths)
    except _NotSimple:
        return
    if paths:
        text = ast.unparse(test)
        yield Condition(file, test.lineno, text, frozenset(paths), value, wanted)


def _compiled_test(test: ast.expr, paths: set[Path]) -> Callable[[Values], bool]:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _compiled(test.operand, paths)
        return lambda values: not inner(values)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        compare = _OPERATORS.get(type(test.ops[0]))
        if compare is not None:
            left = _compiled(test.left, paths)
            right = _compiled(test.comparators[0], paths)
            return lambda values: bool(compare(left(values), right(values)))
    raise _NotSimple


def _compiled(node: ast.expr, paths: set[Path]) -> Callable[[Values], Any]:
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        constant = node.value
        return lambda values: constant
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        combine = _OPERATORS[type(node.op)]
        left, right = _compiled(node.left, paths), _compiled(node.right, paths)
        return lambda values: combine(left(values), right(values))
    path = _path_of(node)
    paths.add(path)
    return lambda values: values[path]


def _path_of(node: ast.expr) -> Path:
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Attribute):
        return (*_path_of(node.value), node.attr)
    key = node.slice if isinstance(node, ast.Subscript) else None
    if isinstance(key, ast.Constant) and isinstance(key.value, str):
        return (*_path_of(node.value), key.value)  # type: ignore[attr-defined]
    raise _NotSimple


def _only_logs(statement: ast.stmt) -> bool:
    """Whether a statement cannot need memory on the card that others do not."""
    if isinstance(statement, (ast.Pass, ast.Break, ast.Continue)):
        return True
    if isinstance(statement, ast.Expr):
        return _calls_only_log(statement.value)
    if isinstance(statement, ast.Assign):
        target = statement.targets[0]
        is_rate = (
            isinstance(target, ast.Subscript)
            and isinstance(target.slice, ast.Constant)
            and target.slice.value in _RATES
        )
        is_number = not any(isinstance(node, ast.Name) for node in ast.walk(statement.value))
        return is_rate or (_calls_only_log(statement.value) and (is_number or _has_call(statement)))
    if isinstance(statement, (ast.If, ast.For)):
        return all(map(_only_logs, [*statement.body, *statement.orelse]))
    return False


def _has_call(statement: ast.stmt) -> bool:
    return any(isinstance(node, ast.Call) for node in ast.walk(statement))


def _calls_only_log(value: ast.expr) -> bool:
    for node in ast.walk(value):
        if isinstance(node, ast.Call):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if name not in _LOGGING:
                return False
    return True
