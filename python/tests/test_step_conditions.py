"""After how many more batches something else happens in a loop."""

from __future__ import annotations

import logging
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ghostgpu.agent.coverage.step_conditions import StepConditions

RUN = 10
"""How many batches have been handed on when the question is asked."""


class Thing:
    """Something with attributes, as trainers and parsed arguments are."""

    def __init__(self, **members: Any) -> None:
        self.__dict__.update(members)


class Batch:
    def item(self) -> float:
        return 0.5

    def sum(self) -> int:
        return 1


class Guarded:
    """Something whose attributes run code."""

    @property
    def warmup(self) -> int:
        raise AssertionError("the script's code was run")

    def __getattr__(self, name: str) -> int:
        raise AssertionError("the script's code was run")


def run_loop(tmp_path: Path, body: str, batches: int = RUN, before: str = "") -> StepConditions:
    """The conditions of `for batch in loader` after so many batches."""
    conditions = StepConditions()

    class Loader:
        def __iter__(self) -> Iterator[Batch]:
            conditions.begin_pass()
            for _ in range(batches):
                conditions.look(sys._getframe(1))
                yield Batch()

    file = tmp_path / "train.py"
    head = f"def train(loader):\n    step = 0; kept = []\n{textwrap.indent(before, '    ')}\n"
    loop = "    for index, batch in enumerate(loader):\n"
    file.write_text(head + loop + textwrap.indent(textwrap.dedent(body), " " * 8))
    names: dict[str, Any] = {"Thing": Thing, "Guarded": Guarded, "evaluate": lambda: None}
    names["logger"] = logging.getLogger(__name__)
    exec(compile(file.read_text(), str(file), "exec"), names)
    names["train"](Loader())
    return conditions


# What the loop does, and after how many batches more the first change comes; None for no change.
LOOPS = [
    ("step += 1\nif step > 40: kept.append(batch)", 32),
    ("step += 1\nif step <= 40: continue\nkept.append(batch)", 32),
    ("if step == 40: kept.append(batch)\nstep += 1", 31),
    ("if index >= 40: kept.append(batch)", 32),
    ("if not (index + 1) % 25: evaluate()", 16),
    ("step += 2\nif step > 40: kept.append(batch)", 12),
    ("if index % 4 == 3: step += 1\nif step >= 5: kept.append(batch)", 12),
    ("if index > 5 and step == 30: kept.append(batch)\nstep += 1", 21),
    ("with open('/dev/null'):\n    if index > 30: kept.append(batch)", 23),
    # Seen already, or the first batch saw it.
    ("if index > 5: kept.append(batch)", None),
    ("if step % 500 == 0: kept.append(batch)\nstep += 1", None),
    # The counter is increased before the first batch gets there.
    ("step += 1\nif step % 500 == 0: kept.append(batch)", 491),
    # Only somebody who watches is told.
    ("if index % 100 == 50: print(index)", None),
    ("if index == 50:\n    value = batch.item()\n    logger.info(value)", None),
    ("if index == 50: break", None),
    # Not counted, or nothing that can be read without running code.
    ("if len(kept) > 50: kept.append(batch)", None),
    ("if batch.sum() > 50: kept.append(batch)", None),
    ("if index > 10_000_000: kept.append(batch)", None),
    ("locals()\nif index > 40: kept.append(batch)", None),
]


@pytest.mark.parametrize(("body", "batches"), LOOPS)
def test_a_change_is_seen_ahead(tmp_path: Path, body: str, batches: int | None) -> None:
    ahead = run_loop(tmp_path, body).ahead()
    assert [each.batches for each in ahead] == ([] if batches is None else [batches])


OWNERS = [
    ("owner = Thing(step=0, args=Thing(warmup=40))", "owner.step", "owner.args.warmup"),
    ("owner = {'step': 0, 'model': {'warmup': 40}}", "owner['step']", "owner['model']['warmup']"),
]


@pytest.mark.parametrize(("before", "counter", "limit"), OWNERS)
def test_attributes_and_items_are_read(
    tmp_path: Path, before: str, counter: str, limit: str
) -> None:
    body = f"{counter} += 1\nif {counter} > {limit}: kept.append(batch)"
    (ahead,) = run_loop(tmp_path, body, before=before).ahead()
    assert ahead.batches == 32
    assert str(ahead.condition) == f"`{counter} > {limit}` (train.py:6)"


def test_no_code_of_the_script_runs(tmp_path: Path) -> None:
    body = "if index < 0 and index > owner.warmup: kept.append(batch)"
    assert run_loop(tmp_path, body, before="owner = Guarded()").ahead() == []


def test_what_the_script_lets_go_of_is_gone(tmp_path: Path) -> None:
    body = """
        if previous is not None:
            gone, previous = weakref.ref(previous), None
            assert gone() is None
        previous = Thing()
        if index > 40: kept.append(batch)
    """
    conditions = run_loop(tmp_path, body, before="import weakref; previous = None")
    assert [each.batches for each in conditions.ahead()] == [33]


def test_what_was_not_reached_is_told_until_it_is(tmp_path: Path) -> None:
    body = "if index > 40: kept.append(batch)"
    conditions = run_loop(tmp_path, body)
    conditions.miss(conditions.ahead()[0].condition)
    assert conditions.missed() == ["`index > 40` (train.py:5)"]
