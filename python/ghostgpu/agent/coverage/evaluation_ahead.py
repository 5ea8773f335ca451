"""Finds evaluations in the script's source, to know which of them have not been reached yet.

A call of `eval()` without arguments puts a model into evaluation mode. Whether it can be reached
follows from the calls in the user's own files, matched by name: an evaluation in a function that
nothing calls is ignored.
"""

from __future__ import annotations

import ast
import os
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Iterable

from ..stacks import is_user_code

if TYPE_CHECKING:
    from typing import TypeGuard

_MOST_FILES = 200
_LONGEST_FILE_BYTES = 1 << 20
_TOP = "<top>"


@dataclass(frozen=True)
class EvaluationLine:
    """A line of the user's code that puts a model into evaluation mode."""

    file: str
    first: int
    last: int

    def __str__(self) -> str:
        return f"{os.path.basename(self.file)}:{self.first}"


@dataclass
class _Function:
    calls: set[str] = field(default_factory=set)
    evaluations: list[EvaluationLine] = field(default_factory=list)


def reachable_evaluations(sources: Iterable[tuple[str, str]]) -> list[EvaluationLine]:
    """The evaluations in these files (name and text) that can be reached."""
    functions: dict[str, list[_Function]] = {}
    for file, text in sources:
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            continue
        _Reader(file, functions).read(tree, _TOP)
    reached, open_names = {_TOP}, [_TOP]
    while open_names:
        for function in functions.get(open_names.pop(), ()):
            for name in function.calls - reached:
                reached.add(name)
                open_names.append(name)
    found = [
        line
        for name in reached
        for function in functions.get(name, ())
        for line in function.evaluations
    ]
    return sorted(set(found), key=lambda line: (line.file, line.first))


def _is_evaluation(node: ast.AST) -> TypeGuard[ast.Call]:
    if not isinstance(node, ast.Call) or node.args or node.keywords:
        return False
    return isinstance(node.func, ast.Attribute) and node.func.attr == "eval"


class _Reader:
    """Collects what each function calls; functions and methods of the same name are merged."""

    def __init__(self, file: str, functions: dict[str, list[_Function]]) -> None:
        self._file = file
        self._functions = functions

    def read(self, node: ast.AST, name: str) -> None:
        function = _Function()
        self._functions.setdefault(name, []).append(function)
        for child in ast.iter_child_nodes(node):
            self._visit(child, function)

    def _visit(self, node: ast.AST, function: _Function) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self.read(node, node.name)
            return
        if _is_evaluation(node):
            last = node.end_lineno or node.lineno
            function.evaluations.append(EvaluationLine(self._file, node.lineno, last))
        # A function that is passed as a value may be called by whoever receives it.
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            function.calls.add(node.id)
        elif isinstance(node, ast.Attribute):
            function.calls.add(node.attr)
        for child in ast.iter_child_nodes(node):
            self._visit(child, function)


def main_file() -> str | None:
    """The path of the script. Call this while it runs: Python clears `__main__` at exit."""
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    return os.path.abspath(file) if isinstance(file, str) else None


def users_sources(script: str | None) -> list[tuple[str, str]]:
    """Name and text of the script and of every imported module of the user's own code."""
    files = [script] if script is not None else []
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and file.endswith(".py") and is_user_code(file):
            files.append(os.path.abspath(file))
    sources = []
    for file in sorted(set(files))[:_MOST_FILES]:
        try:
            if os.path.getsize(file) <= _LONGEST_FILE_BYTES:
                with open(file, encoding="utf-8", errors="replace") as text:
                    sources.append((file, text.read()))
        except OSError:
            continue
    return sources
