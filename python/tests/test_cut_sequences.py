"""Batches that are cut to fewer tokens."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from ghostgpu.agent.forks.cut_sequences import CutBatches  # noqa: E402
from ghostgpu.agent.report import SizePointReport  # noqa: E402
from ghostgpu.tricks.sequences import cut, sequence_length  # noqa: E402

Pair = namedtuple("Pair", ["tokens", "labels"])


def tokens(*shape: int) -> Any:
    return torch.ones(shape, dtype=torch.long)


@pytest.mark.parametrize(
    ("batch", "length"),
    [
        ({"input_ids": tokens(4, 64), "labels": tokens(4)}, 64),
        ((tokens(4, 32), tokens(4, 32)), 32),
        # Hugging Face's name says which of two lengths is the input's.
        ({"labels": tokens(4, 16), "input_ids": tokens(4, 64)}, 64),
        ([torch.ones(4, 3, 32, 32), tokens(4)], None),
        ({"image": torch.ones(4, 3, 32, 32), "label": tokens(4, 5)}, None),
        # Samples may be the second dimension: nobody can tell.
        ((tokens(35, 20), tokens(700)), None),
        ("text", None),
    ],
)
def test_the_length_of_a_batch_is_that_of_its_tokens(batch: Any, length: int | None) -> None:
    assert sequence_length(torch, batch) == length


def test_everything_of_that_length_is_cut_and_nothing_else() -> None:
    batch = {
        "input_ids": tokens(4, 64),
        "mask": tokens(4, 64, 64),
        "labels": tokens(4),
        "pixels": torch.ones(4, 3, 64),
        "pair": Pair(tokens(4, 64), [tokens(4, 10)]),
    }
    done = cut(torch, batch, 64, 16)
    assert done["input_ids"].shape == (4, 16)
    assert done["mask"].shape == (4, 16, 16)
    assert done["labels"].shape == (4,)
    assert done["pixels"].shape == (4, 3, 64)
    assert isinstance(done["pair"], Pair)
    assert done["pair"].tokens.shape == (4, 16)
    assert done["pair"].labels[0].shape == (4, 10)
    assert done["input_ids"].is_contiguous()


def test_a_loader_s_batches_are_looked_at_and_cut() -> None:
    report = SizePointReport()
    batches = [{"input_ids": tokens(2, 64)}, {"input_ids": tokens(2, 64)}]
    seen = list(CutBatches(torch, iter(batches), report, None))
    assert [each["input_ids"].size(1) for each in seen] == [64, 64]
    assert (report.seq, report.seq_place) == (64, "input_ids, of 64 tokens")
    seen = list(CutBatches(torch, iter(batches), SizePointReport(), 48))
    assert [each["input_ids"].size(1) for each in seen] == [48, 48]


def test_batches_without_tokens_are_said_to_have_none() -> None:
    report = SizePointReport()
    list(CutBatches(torch, iter([torch.ones(4, 3)]), report, None))
    assert report.seq is None
    assert report.no_sequence_because is not None
    assert report.no_sequence_because.startswith("the batches have no whole numbers in rows")
