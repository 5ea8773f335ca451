"""The catalogue, the registry and the files of the tricks say the same."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ghostgpu.tricks import catalogue, registry
from ghostgpu.tricks.__main__ import understood
from ghostgpu.tricks.allocator import merged
from ghostgpu.tricks.offload_activations import OffloadActivations
from ghostgpu.tricks.refusal import Refused

TRICKS = Path(registry.__file__).parent


def file_of(name: str) -> Path:
    module = TRICKS / registry.PLACES[name][0]
    return module / "__init__.py" if module.is_dir() else module.with_suffix(".py")


def test_the_registry_has_the_tricks_of_the_catalogue_and_no_others() -> None:
    assert set(registry.PLACES) == set(catalogue.tricks())


@pytest.mark.parametrize("name", registry.PLACES)
def test_a_trick_has_a_file_that_says_what_it_saves_and_costs(name: str) -> None:
    path = file_of(name)
    tree = ast.parse(path.read_text())
    words = ast.get_docstring(tree) or ""
    for field in ("Saves:", "Costs:", "Numbers:", "Conflicts:"):
        assert field in words, f"{path.name} says nothing about {field}"
    kinds = {each.name: each for each in ast.walk(tree) if isinstance(each, ast.ClassDef)}
    kind = kinds[registry.PLACES[name][1]]
    assert ast.get_docstring(kind)
    named = [
        ast.literal_eval(each.value)
        for each in kind.body
        if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "name"
    ]
    assert named == [name]


def test_no_trick_imports_the_agent_or_anything_but_torch_at_its_top() -> None:
    for path in TRICKS.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ImportFrom):
                assert "agent" not in (node.module or ""), path
                assert node.level <= 2 or path.parent != TRICKS, path


def test_conflicts_hold_in_both_directions() -> None:
    for each in catalogue.load()["conflicts"]:
        first, second = (
            (name, {k: v for k, v in each.get("when", {}).items() if k in _options(name)})
            for name in each["between"]
        )
        for requests in ([first, second], [second, first]):
            with pytest.raises(Refused) as refused:
                catalogue.checked(requests)
            assert each["because"] in refused.value.reason
            assert refused.value.alternative == each["instead"]


def _options(name: str) -> set[str]:
    return {option["name"] for option in catalogue.tricks()[name]["options"]}


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("chunking", {"chunks": "0"}, "a whole number from 1 on"),
        ("chunking", {"chunks": "+4"}, "a whole number from 1 on"),
        ("chunking", {"pieces": "4"}, "has no option `pieces`"),
        ("autocast", {"dtype": "fp8"}, "it is bf16 or fp16"),
        ("checkpointing", {"blocks": "0"}, "does nothing"),
        ("offload-activations", {"threshold": "much"}, "a size such as 1MiB"),
        ("allocator", {"settings": "expandable_segments"}, "not of the form name:value"),
        ("chunky", {}, "there is no trick `chunky`"),
    ],
)
def test_wrong_requests_are_refused(name: str, options: dict[str, str], reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        catalogue.checked([(name, options)])


def test_defaults_are_filled_in_and_the_order_is_the_catalogue_s() -> None:
    checked = catalogue.checked([("autocast", {}), ("checkpointing", {"blocks": "3"})])
    assert checked == [
        ("checkpointing", {"blocks": "3", "keep": "nothing"}),
        ("autocast", {"dtype": "bf16"}),
    ]


@pytest.mark.parametrize(
    ("line", "requests", "command"),
    [
        ("train.py --amp bf16", [], "train.py --amp bf16"),
        ("--amp fp16 train.py", [("autocast", {"dtype": "fp16"})], "train.py"),
        ("--offload-activations train.py", [("offload-activations", {})], "train.py"),
        (
            "--offload-activations=4MiB x.py",
            [("offload-activations", {"threshold": "4MiB"})],
            "x.py",
        ),
        ("--optimizer 8bit -m pkg", [("eight-bit-optimizer", {})], "-m pkg"),
        (
            "--optimizer=fused -- torchrun x.py",
            [("optimizer-form", {"form": "fused"})],
            "torchrun x.py",
        ),
    ],
)
def test_options_of_the_module_mean_what_those_of_the_command_do(
    line: str, requests: list[Any], command: str
) -> None:
    assert understood(line.split()) == (requests, command.split())


@pytest.mark.parametrize("line", ["", "--amp", "--nonsense x.py", "--inplace=3 x.py", "--inplace"])
def test_lines_without_a_script_or_a_value_are_refused(line: str) -> None:
    with pytest.raises(Refused):
        understood(line.split())


@pytest.mark.parametrize(
    ("present", "settings", "result"),
    [
        (None, "expandable_segments:True", "expandable_segments:True"),
        (
            "max_split_size_mb:128",
            "expandable_segments:True",
            "max_split_size_mb:128,expandable_segments:True",
        ),
        ("expandable_segments:False", "expandable_segments:True", "expandable_segments:True"),
        (
            "roundup_power2_divisions:[256:1,>:4],a:1",
            "a:2",
            "roundup_power2_divisions:[256:1,>:4],a:2",
        ),
    ],
)
def test_settings_of_the_allocator_that_are_there_stay(
    present: str | None, settings: str, result: str
) -> None:
    assert merged(present, settings) == result


@pytest.mark.parametrize("size", ["64kb", "1.5 MiB", "4096", "10b"])
def test_a_size_that_is_accepted_can_be_used(size: str) -> None:
    """A trick reads its size as the catalogue does that has checked it."""
    ((name, options),) = catalogue.checked([("offload-activations", {"threshold": size})])
    hooks: Any = SimpleNamespace()
    trick = OffloadActivations(SimpleNamespace(), hooks, options)
    assert trick.name == name
    assert trick._host._threshold == catalogue.bytes_of(size)
