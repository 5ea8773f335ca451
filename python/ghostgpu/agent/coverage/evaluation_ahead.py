"""Finds evaluations in the script's source, to know which of them have not been reached yet.

A call of `eval()` without arguments puts a model into evaluation mode, and many scripts only switch
gradients off (`torch.no_grad()`) and call the model. Whether these lines can be reached
follows from the calls in the user's own files, matched by name: an evaluation in a function that
nothing calls is ignored, and so is one in a class that nothing names.
"""

from __future__ import annotations

import ast
import builtins
import os
import sys
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Iterable

from ..stacks import is_user_code

if TYPE_CHECKING:
    from typing import TypeGuard

_MOST_FILES = 200
_LONGEST_FILE_BYTES = 1 << 20
_TOP = "<top>"
_WITHOUT_GRADIENTS = frozenset({"no_grad", "inference_mode"})
_BUILTINS = frozenset(dir(builtins))
_CALLS_OF_MODELS = frozenset({"forward", "generate", "predict", "sample"})


@dataclass(frozen=True)
class EvaluationLine:
    """A line of the user's code that begins an evaluation."""

    file: str
    first: int
    last: int
    is_repeated: bool = False
    """Whether several places call its function, which goes through data: evaluating before the
    training does not mean that it will not evaluate later, with more on the card."""

    def __str__(self) -> str:
        return f"{os.path.basename(self.file)}:{self.first}"


@dataclass
class _Function:
    calls: Counter[str] = field(default_factory=Counter)
    has_loop: bool = False
    evaluations: list[EvaluationLine] = field(default_factory=list)
    without_gradients: list[EvaluationLine] = field(default_factory=list)
    """Where gradients are switched off and something is called that may be a model."""
    owner: str | None = None
    """The class of a method."""


def reachable_evaluations(
    sources: Iterable[tuple[str, str]], script: str | None = None
) -> list[EvaluationLine]:
    """The evaluations in these files (name and text) that can be reached.

    All but `script` are imported. Without it, each is taken for the script.
    """
    functions: dict[str, list[_Function]] = {}
    for file, text in sources:
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            continue
        is_imported = script is not None and file != script
        _Reader(file, functions, is_imported).read(tree, _Function(), _TOP)
    reached, open_names = {_TOP}, [_TOP]
    calls: Counter[str] = Counter()
    while open_names:
        for function in functions.get(open_names.pop(), ()):
            calls.update(function.calls)
            for name in function.calls.keys() - reached:
                reached.add(name)
                open_names.append(name)
    found: set[EvaluationLine] = set()
    for name in reached:
        for function in functions.get(name, ()):
            lines = list(function.evaluations)
            # Methods have common names, such as `update`, and gradients are off in many of them.
            if function.owner is None or function.owner in reached:
                lines += function.without_gradients
            is_repeated = function.has_loop and calls[name] > 1
            found.update(replace(line, is_repeated=is_repeated) for line in lines)
    return sorted(found, key=lambda line: (line.file, line.first))


def _is_evaluation(node: ast.AST) -> TypeGuard[ast.Call]:
    if not isinstance(node, ast.Call) or node.args or node.keywords:
        return False
    return isinstance(node.func, ast.Attribute) and node.func.attr == "eval"


def _switches_gradients_off(node: ast.expr) -> bool:
    """Whether this is `torch.no_grad()` or the like, called or as a plain decorator."""
    called = node.func if isinstance(node, ast.Call) else node
    # `inference_mode(False)` does not.
    return _last_name(called) in _WITHOUT_GRADIENTS and not getattr(node, "args", None)


def _last_name(node: ast.expr) -> str:
    """`no_grad` of `torch.no_grad`; empty if the expression is no name."""
    return str(getattr(node, "attr", None) or getattr(node, "id", ""))


def _may_call_a_model(body: list[ast.stmt]) -> bool:
    """Whether anything is called that is no method of a tensor and no function of torch.

    Moving averages, initialisation and statistics need no gradients either, but they call only
    those.
    """
    return any(
        isinstance(node, ast.Call) and _may_be_a_model(node.func)
        for statement in body
        for node in ast.walk(statement)
    )


def _may_be_a_model(called: ast.expr) -> bool:
    if isinstance(called, ast.Name):
        # By convention, the name of what changes a tensor in place ends like this.
        return called.id not in _BUILTINS and not called.id.endswith("_")
    if not isinstance(called, ast.Attribute):
        return False
    is_own = isinstance(called.value, ast.Name) and called.value.id == "self"
    return is_own or called.attr in _CALLS_OF_MODELS


class _Reader:
    """Collects what each function calls; functions and methods of the same name are merged."""

    def __init__(self, file: str, functions: dict[str, list[_Function]], is_imported: bool) -> None:
        self._file = file
        self._functions = functions
        self._is_imported = is_imported

    def read(self, node: ast.AST, function: _Function, name: str) -> None:
        self._functions.setdefault(name, []).append(function)
        for child in ast.iter_child_nodes(node):
            self._visit(child, function)

    def _visit(
        self, node: ast.AST, function: _Function, in_class: ast.ClassDef | None = None
    ) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            own = _Function(owner=in_class.name if in_class is not None else None)
            # An optimizer calls what computes the loss, to differentiate it.
            if in_class is None or not _is_an_optimizer(in_class):
                self._read_decorators(node, own)
            self.read(node, own, node.name)
            return
        if self._is_imported and _is_for_scripts_only(node):
            return
        if _is_evaluation(node):
            last = node.end_lineno or node.lineno
            function.evaluations.append(EvaluationLine(self._file, node.lineno, last))
        if isinstance(node, (ast.With, ast.AsyncWith)):
            self._read_block(node, function)
        function.has_loop |= isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension))
        # A function that is passed as a value may be called by whoever receives it.
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            function.calls[node.id] += 1
        elif isinstance(node, ast.Attribute):
            function.calls[node.attr] += 1
        for child in ast.iter_child_nodes(node):
            self._visit(child, function, node if isinstance(node, ast.ClassDef) else None)

    def _read_decorators(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, function: _Function
    ) -> None:
        is_off = any(_switches_gradients_off(each) for each in node.decorator_list)
        if is_off and _may_call_a_model(node.body):
            first = node.decorator_list[0].lineno
            function.without_gradients.append(EvaluationLine(self._file, first, node.lineno))

    def _read_block(self, node: ast.With | ast.AsyncWith, function: _Function) -> None:
        off = [it.context_expr for it in node.items if _switches_gradients_off(it.context_expr)]
        if off and _may_call_a_model(node.body):
            last = max(each.end_lineno or each.lineno for each in off)
            function.without_gradients.append(EvaluationLine(self._file, node.lineno, last))


def _is_for_scripts_only(node: ast.AST) -> bool:
    """Whether this is `if __name__ == "__main__":`, under which modules try themselves."""
    if not isinstance(node, ast.If) or not isinstance(node.test, ast.Compare):
        return False
    return any(isinstance(each, ast.Name) and each.id == "__name__" for each in ast.walk(node.test))


def _is_an_optimizer(node: ast.ClassDef) -> bool:
    return any("Optimizer" in _last_name(base) for base in node.bases)


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
