"""A size point: an option of the script's command line that sets the batch size.

The script is forked when it reads its arguments with `argparse`: by then it has imported what it
needs but has not yet used the batch size. For scripts that read arguments in another way, the
command line starts whole runs with changed arguments.
"""

from __future__ import annotations

import argparse
import difflib
import functools
import sys
from typing import TYPE_CHECKING, Any, Sequence

if TYPE_CHECKING:
    from .size_points import SizeSetter

_Parse = Any


class ArgumentSizePoint:
    """Wraps `argparse`'s parser."""

    def __init__(self, setter: SizeSetter, option: str) -> None:
        self._setter = setter
        self._option = option
        self._known: list[str] = []

    def install(self) -> None:
        original: _Parse = argparse.ArgumentParser.parse_known_args
        see = self._see

        @functools.wraps(original)
        def parse(
            parser: argparse.ArgumentParser,
            args: Sequence[str] | None = None,
            namespace: Any = None,
            **options: Any,
        ) -> Any:
            changed = see(parser, args)
            return original(parser, changed, namespace, **options)

        argparse.ArgumentParser.parse_known_args = parse  # type: ignore[assignment]

    def _see(
        self, parser: argparse.ArgumentParser, args: Sequence[str] | None
    ) -> Sequence[str] | None:
        setter = self._setter
        if not setter.is_active or setter.report.is_found:
            return args
        if args is not None and list(args) != sys.argv[1:]:
            return args  # not the command line
        action = None
        if not self._option.endswith("="):
            actions = options_of(parser)
            action = actions.get(self._option)
            if action is None:
                self._known += [name for name in actions if name not in self._known]
                report = setter.report
                report.similar_options = similar(self._option, self._known)
                return args
        report = setter.report
        report.place = f"the argument {self._option}"
        report.batch = present_value(sys.argv[1:], self._option)
        default = getattr(action, "default", None)
        if report.batch is None and isinstance(default, int) and not isinstance(default, bool):
            report.batch = default
        sizes = setter.arrive()
        if not sizes or "batch" not in sizes:
            return args
        sys.argv[1:] = with_value(sys.argv[1:], self._option, int(sizes["batch"]))
        return None if args is None else sys.argv[1:]


def options_of(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """Every option that a parser and its sub-commands know."""
    options: dict[str, argparse.Action] = dict(parser._option_string_actions)
    for action in parser._actions:
        choices = getattr(action, "choices", None)
        if isinstance(action, argparse._SubParsersAction) and isinstance(choices, dict):
            for inner in choices.values():
                options.update(options_of(inner))
    return options


def similar(option: str, known: list[str]) -> list[str]:
    """Known options that may have been meant: those spelled alike, and those about batches."""
    close = difflib.get_close_matches(option, known, n=3, cutoff=0.6)
    return close + [name for name in _about_batches(known) if name not in close]


def _about_batches(names: list[str]) -> list[str]:
    return [name for name in names if name.startswith("--") and "batch" in name]


def batch_options(found: list[str]) -> None:
    """Append the script's batch options to `found` once its parser parses arguments."""
    original: _Parse = argparse.ArgumentParser.parse_known_args

    @functools.wraps(original)
    def parse(parser: argparse.ArgumentParser, *arguments: Any, **options: Any) -> Any:
        found.extend(n for n in _about_batches(list(options_of(parser))) if n not in found)
        return original(parser, *arguments, **options)

    argparse.ArgumentParser.parse_known_args = parse  # type: ignore[assignment]


def present_value(words: list[str], option: str) -> int | None:
    """The number that an option has on a command line; `option` may end with `=` (`key=`)."""
    value = None
    prefix = option if option.endswith("=") else option + "="
    for index, word in enumerate(words):
        if word.startswith(prefix):
            value = word[len(prefix) :]
        elif word == option and index + 1 < len(words):
            value = words[index + 1]
    return int(value) if value is not None and value.isdigit() else None


def with_value(words: list[str], option: str, number: int) -> list[str]:
    """The command line with the option set to `number`: in its place, or at the end.

    `crates/rehearse/src/words.rs` does the same for whole runs.
    """
    result = list(words)
    prefix = option if option.endswith("=") else option + "="
    places = [index for index, word in enumerate(words) if word.startswith(prefix)]
    for index in places:
        result[index] = f"{prefix}{number}"
    for index, word in enumerate(words[:-1]):
        if word == option:
            result[index + 1] = str(number)
            places.append(index)
    if not places:
        result += [f"{option}{number}"] if option.endswith("=") else [option, str(number)]
    return result
