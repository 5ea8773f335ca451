"""Every case of the table runs on a CPU with a small model, so that no device time is lost to
a mistake in the table itself."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from test_exactness import MEASURED, REPLAYED

HARNESS = Path(__file__).resolve().parent / "harness"
sys.path.insert(0, str(HARNESS))

torch = pytest.importorskip("torch")

import cases  # noqa: F401
from case import CASES
from context import Context
from micro import OPERATIONS
from micro_ops import try_on_cpu
from scope import is_short, one_per_family
from training import train

# The tensors are tiny: a second thread would only be waited for.
torch.set_num_threads(1)

#: Libraries warn about themselves here (a deprecated name, a slower CPU path). None of it is ours.
pytestmark = pytest.mark.filterwarnings("default")

#: Allocator settings and caps mean nothing to a CPU: such a case is another one over again, unless
#: it has a loop of its own. Library models cannot all be made small, and would take minutes here;
#: on the virtual card they take seconds.
DISTINCT = [
    name
    for name, case in CASES.items()
    if (case.script or (not case.settings and case.cap_gib is None))
    and case.family not in ("further_models", "met_later")
]
if is_short():
    # What is measured already runs, as one of each family shows; what is to be measured is tried.
    DISTINCT = [
        *one_per_family([name for name in DISTINCT if name in REPLAYED], MEASURED),
        *(name for name in DISTINCT if name not in MEASURED),
    ]


@pytest.mark.parametrize("name", DISTINCT)
def test_a_tiny_version_of_the_case_runs_on_a_cpu(name: str) -> None:
    case = CASES[name]
    done: list[None] = []
    context = Context(case, device="cpu", tiny=True, on_step=lambda: done.append(None))
    torch.manual_seed(0)
    (case.script or train)(context)
    assert 1 <= len(done) <= max(2, case.steps)


@pytest.mark.parametrize("name", [n for n, op in OPERATIONS.items() if not op.needs_card])
def test_the_operation_runs_on_a_cpu(name: str) -> None:
    try_on_cpu(OPERATIONS[name])


def test_the_table_covers_every_family_with_several_cases() -> None:
    families: dict[str, int] = {}
    for case in CASES.values():
        families[case.family] = families.get(case.family, 0) + 1
    assert len(families) == len(cases.FAMILIES)
    assert min(families.values()) >= 5, families
