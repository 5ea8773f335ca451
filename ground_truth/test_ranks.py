"""Trainings of several ranks: on virtual cards what real NCCL's ranks had on an H200.

All cases are forked from one rehearsal of `harness/ranks/measure_ranks.py`; `make test` has a few.
Where real ranks do not repeat themselves, a rehearsal must lie within what they showed; what else
differs is in `h200/ranks/deviations.toml`, with its size and its reason.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from test_exactness import HARNESS, REAL, program

sys.path.insert(0, str(HARNESS / "ranks"))

from measure_ranks import (  # type: ignore[import-not-found]  # noqa: E402
    peaks,
    peaks_seen,
    ranks_of,
    read,
    requests,
)

from deviations import Deviation, read_deviations  # noqa: E402
from scope import is_short  # noqa: E402

MEASURED: dict[str, list[Any]] = read(REAL / "ranks/ranks.jsonl")
DEVIATIONS = read_deviations(REAL / "ranks/deviations.toml")

SENTINELS = (
    "ddp-buckets",
    "fsdp1",
    "fsdp2-bf16",
    "experts",
    "context-ring",
    "objects",
    "cap-fsdp2-out",
)
"""One of each kind, for `make test`: some three seconds each."""

CASES = SENTINELS if is_short() else tuple(MEASURED)

ASKED_OTHERWISE = {
    "ddp-power-sgd": "workspaces of cuSOLVER for shapes that nobody recorded",
    "experts-there-and-back": "Python 3.11 and 3.12 let go of a gradient in another order",
    "experts-there-and-back-4": "Python 3.11 and 3.12 let go of a gradient in another order",
    "lightning": "Lightning sends the path of its folder to the other ranks, which is longer there",
    "lightning-fsdp": "Lightning sends the path of its folder to the other ranks",
}
"""Cases in which not every request has the same size, and why."""


@pytest.fixture(scope="module")
def rehearsed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    found = tmp_path_factory.mktemp("ranks") / "virtual.jsonl"
    words = [sys.executable, str(HARNESS / "ranks/measure_ranks.py"), "virtual", str(found)]
    words += [*CASES, "--ghostgpu", program()]
    subprocess.run(words, check=False, timeout=3600)
    return read(found)


@pytest.mark.parametrize("case", CASES)
def test_every_rank_has_what_a_real_one_had(case: str, rehearsed: dict[str, list[Any]]) -> None:
    assert case in rehearsed, "it did not come to its end"
    allowed = DEVIATIONS.get(case, Deviation(case, 0, 0, ""))
    for rank in range(ranks_of(case)):
        seen = peaks_seen(MEASURED[case], case, rank)
        mine = peaks(rehearsed[case][-1], rank)
        for name, place in (("allocated", 0), ("reserved", 1)):
            figures = [each[place] for each in seen]
            error = allowed.limits()[f"peak_{name}_bytes"]
            least, most = min(figures) - error, max(figures) + error
            assert least <= mine[place] <= most, f"{name} of rank {rank}: seen were {figures}"


@pytest.mark.parametrize("case", [case for case in CASES if case not in ASKED_OTHERWISE])
def test_every_rank_asks_for_the_same_blocks_in_the_same_order(
    case: str, rehearsed: dict[str, list[Any]]
) -> None:
    assert case in rehearsed, "it did not come to its end"
    for rank in range(ranks_of(case)):
        assert rehearsed[case][-1]["figures"][rank]["requests"] in requests(MEASURED[case], rank)


@pytest.mark.parametrize("case", [case for case in CASES if case.startswith("cap-")])
def test_a_rank_with_too_little_memory_retries_and_runs_out_as_on_the_card(
    case: str, rehearsed: dict[str, list[Any]]
) -> None:
    def endings(run: Any) -> list[tuple[int, bool]]:
        return [(rank["retries"], rank["has_run_out"]) for rank in run["figures"]]

    assert endings(rehearsed[case][-1]) in [endings(run) for run in MEASURED[case]]


def test_deviations_are_of_cases_that_exist() -> None:
    assert DEVIATIONS.keys() <= MEASURED.keys()
