"""Arguments of a script that are set to another number."""

from __future__ import annotations

import argparse

import pytest

from ghostgpu.agent.forks.argument_size_point import options_of, present_value, similar, with_value


@pytest.mark.parametrize(
    ("words", "option", "changed"),
    [
        ("--lr 1", "--batch-size", "--lr 1 --batch-size 9"),
        ("--batch-size 8 -v", "--batch-size", "--batch-size 9 -v"),
        ("--batch-size=8 -v", "--batch-size", "--batch-size=9 -v"),
        ("-b 8", "-b", "-b 9"),
        ("data.batch=8 x=1", "data.batch=", "data.batch=9 x=1"),
        ("x=1", "batch=", "x=1 batch=9"),
    ],
)
def test_an_argument_is_set_where_it_stands_or_at_the_end(
    words: str, option: str, changed: str
) -> None:
    assert with_value(words.split(), option, 9) == changed.split()


def test_the_present_number_is_the_last_one() -> None:
    assert present_value(["--b", "8", "--b=4"], "--b") == 4
    assert present_value(["b=3"], "b=") == 3
    assert present_value(["--b", "x"], "--b") is None
    assert present_value(["--b"], "--b") is None


def test_options_of_sub_commands_are_known_too() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int)
    commands = parser.add_subparsers()
    commands.add_parser("train").add_argument("--batch-size", type=int, default=8)
    options = options_of(parser)
    assert {"--seed", "--batch-size"} <= set(options)
    assert options["--batch-size"].default == 8


def test_options_that_may_have_been_meant_are_offered() -> None:
    known = ["--lr", "--per_device_train_batch_size", "--batch_size", "--seed"]
    assert similar("--batch-size", known) == ["--batch_size", "--per_device_train_batch_size"]
    assert similar("--lrr", known)[0] == "--lr"
