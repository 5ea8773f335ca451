"""The descriptions of all tricks, from `catalogue.json`, which the command line reads too."""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .refusal import Refused

Request = tuple[str, Mapping[str, str]]
"""A trick's name, and its options as text."""

_UNITS = {"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
_UNITS |= {"kb": 10**3, "mb": 10**6, "gb": 10**9}


@functools.cache
def load() -> dict[str, Any]:
    """The parsed file."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "catalogue.json")
    with open(path, encoding="utf-8") as file:
        fields: dict[str, Any] = json.load(file)
    return fields


def tricks() -> dict[str, dict[str, Any]]:
    """Every trick by its name, those closest to the model's own code first."""
    return {trick["name"]: trick for trick in load()["tricks"]}


def checked(requests: Sequence[Request]) -> list[Request]:
    """The requests in the order of the catalogue, with all options filled in and checked.

    Raises `Refused` for unknown names, invalid options, duplicates and conflicts.
    """
    known = tricks()
    wanted: dict[str, Mapping[str, str]] = {}
    for name, options in requests:
        if name not in known:
            raise Refused(f"there is no trick `{name}`", "`ghostgpu tricks` lists them")
        if name in wanted:
            raise Refused(f"the trick `{name}` is asked for twice", "leave one of them out")
        wanted[name] = _options(known[name], options)
    _refuse_conflicts(wanted)
    return [(name, wanted[name]) for name in known if name in wanted]


def _options(trick: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, str]:
    described = {option["name"]: option for option in trick["options"]}
    for name in given:
        if name not in described:
            names = ", ".join(described) or "none"
            raise Refused(
                f"the trick `{trick['name']}` has no option `{name}`", f"its options: {names}"
            )
    options = {name: str(given.get(name, each["default"])) for name, each in described.items()}
    for name, value in options.items():
        problem = _problem(described[name], value)
        if problem is not None:
            raise Refused(
                f"`{value}` cannot be the {name} of the trick `{trick['name']}`: {problem}",
                str(described[name]["help"]),
            )
    return options


def _problem(option: Mapping[str, Any], value: str) -> str | None:
    kind = option["type"]
    if kind == "count":
        is_right = value.isascii() and value.isdigit() and int(value) >= 1
        return None if is_right else "it is a whole number from 1 on"
    if kind == "choice":
        return None if value in option["choices"] else f"it is {' or '.join(option['choices'])}"
    if kind == "size":
        return None if bytes_of(value) is not None else "it is a size such as 1MiB"
    if kind == "allocator-settings":
        return _allocator_problem(value)
    if kind == "blocks" and value.isdigit() and int(value) == 0:
        return "checkpointing 0 blocks does nothing"
    return None if value.strip() else "it is empty"


def _allocator_problem(settings: str) -> str | None:
    # A list in brackets is one value (`roundup_power2_divisions:[256:1,>:4]`).
    flat = re.sub(r"\[[^\]]*\]", "[]", settings)
    for setting in flat.split(","):
        if not re.fullmatch(r"\s*[a-z0-9_]+\s*:\s*[A-Za-z0-9_.\[\]]+\s*", setting):
            return f"`{setting.strip()}` is not of the form name:value"
    return None


def bytes_of(size: str) -> int | None:
    """`1MiB`, `64kb`, `4096` in bytes; None if it is not a size."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", size)
    unit = _UNITS.get(found[2].lower()) if found else None
    return None if found is None or unit is None else int(float(found[1]) * unit)


def conflict(one: Request, other: Request) -> Mapping[str, Any] | None:
    """The conflict between two requests, in either order."""
    for each in load()["conflicts"]:
        if set(each["between"]) == {one[0], other[0]}:
            options = {**one[1], **other[1]}
            if all(options.get(name) == value for name, value in each.get("when", {}).items()):
                found: Mapping[str, Any] = each
                return found
    return None


def _refuse_conflicts(wanted: Mapping[str, Mapping[str, str]]) -> None:
    requests = list(wanted.items())
    for place, one in enumerate(requests):
        for other in requests[place + 1 :]:
            found = conflict(one, other)
            if found is not None:
                raise Refused(
                    f"{one[0]} and {other[0]} exclude each other: {found['because']}",
                    str(found["instead"]),
                )


def of_flag(flag: str, value: str) -> Request:
    """The request that a command-line flag stands for; its value is empty if it takes none."""
    candidates = [trick for trick in tricks().values() if trick["flag"] == flag]
    for trick in candidates:
        if trick.get("value", {}).get("word") == value:
            return trick["name"], {}
    for trick in candidates:
        if "value" not in trick:
            return trick["name"], {}
        option = trick["value"].get("option")
        if option is None:
            continue
        described = next(each for each in trick["options"] if each["name"] == option)
        if len(candidates) == 1 or value in described.get("choices", ()):
            return trick["name"], {option: value} if value else {}
    words = [each for trick in candidates for each in _words(trick)]
    raise Refused(f"`{value}` is no value of {flag}", f"it is one of {', '.join(words)}")


def _words(trick: Mapping[str, Any]) -> list[str]:
    if "word" in trick["value"]:
        return [trick["value"]["word"]]
    option = next(each for each in trick["options"] if each["name"] == trick["value"]["option"])
    return list(option["choices"])
