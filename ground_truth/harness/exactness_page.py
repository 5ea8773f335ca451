"""Writes the figures of docs/exactness.md from a replay, so that none is typed by hand.

    python ground_truth/harness/exactness_page.py replay --largest-batch replayed.json \\
        --write docs/exactness.md

`replay` is what `run_all.py` left when it ran on the virtual card, and `replayed.json` what
`largest_batch.py` left. Without `--write` the section is printed.
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from archive import read_results
from compare import EXACT_FIELDS, Comparison, compare_folders
from deviations import Deviation, read_deviations

HERE = Path(__file__).resolve().parent
REAL = HERE.parent / "h200"
BEGIN = "<!-- exactness:begin (written by ground_truth/harness/exactness_page.py) -->"
END = "<!-- exactness:end -->"
MIB = 1 << 20

#: Families that were recorded after the rules were settled.
UNSEEN = ("further_models", "own_models", "met_later")


def section(
    real: dict[str, dict[str, Any]],
    comparisons: list[Comparison],
    known: dict[str, Deviation],
    searches: tuple[dict[str, int], dict[str, int]],
) -> str:
    measured = [c for c in comparisons if not c.is_unmeasured]
    unseen = [c for c in measured if real[c.case]["family"] in UNSEEN]
    parts = [
        _introduction(real, measured, unseen),
        _largest_batches(*searches),
        _table([c for c in measured if not c.is_equal], real, known),
        _on_card(measured),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _introduction(
    real: dict[str, dict[str, Any]], measured: list[Comparison], unseen: list[Comparison]
) -> str:
    environment = next(iter(real.values()))["environment"]
    equal = sum(c.is_equal for c in measured)
    equal_unseen = sum(c.is_equal for c in unseen)
    return _paragraph(
        f"Measured on a real H200 (driver {environment['driver']}, "
        f"torch {environment['torch']}) by "
        f"`ground_truth/harness/run_all.py`: {len(measured)} cases: convolution nets, "
        "transformers, recurrent nets, optimizers, precisions, allocator settings, memory caps, "
        "frameworks and `torch.compile`. The test suite (`make test-ground-truth`) replays them on "
        "the virtual H200 and compares peak allocated and peak reserved after every step. "
        f"**{equal} of {len(measured)} cases are equal to the byte in both, at every step.** "
        "Of the "
        f"{len(unseen)} models that were recorded after the rules were settled "
        f"(`further_models`, `own_models`, `met_later`), {equal_unseen} are."
    )


def _largest_batches(theirs: dict[str, int], ours: dict[str, int]) -> str:
    if not ours:
        return ""
    equal = sum(theirs[name] == batch for name, batch in ours.items())
    others = ", ".join(
        f"{name}: {batch} instead of {theirs[name]}"
        for name, batch in sorted(ours.items())
        if theirs[name] != batch
    )
    return _paragraph(
        "The largest batch under a memory cap, found by bisection "
        f"(`ground_truth/harness/largest_batch.py`), equals the real card's for {equal} of "
        f"{len(ours)} models{f' ({others})' if others else ''}."
    )


def _table(
    unequal: list[Comparison], real: dict[str, dict[str, Any]], known: dict[str, Deviation]
) -> str:
    if not unequal:
        return ""
    rows = ["These cases differ:", "", "| case | allocated | reserved | why |", "|---|---|---|---|"]
    for comparison in sorted(unequal, key=lambda c: c.case):
        allocated, reserved = (_error(comparison, real, key) for key in EXACT_FIELDS)
        entry = known.get(comparison.case)
        reason = entry.reason if entry else "; ".join(comparison.differences)
        rows.append(f"| {comparison.case} | {allocated} | {reserved} | {reason} |")
    rows += ["", "Errors are in bytes (virtual minus real), the largest of all steps."]
    return "\n".join(rows)


def _error(comparison: Comparison, real: dict[str, dict[str, Any]], key: str) -> str:
    error = comparison.error_bytes.get(key)
    if error is None:
        return "stops"
    steps = real[comparison.case]["steps"]
    whole = max((step[key] or 0 for step in steps), default=0)
    if not error or not whole:
        return f"{error:+,}" if error else "0"
    return f"{error:+,} ({error / whole:+.2%})"


def _on_card(measured: list[Comparison]) -> str:
    errors = [
        abs(c.on_card_error_bytes)
        for c in measured
        if c.is_equal and c.on_card_error_bytes is not None
    ]
    if not errors:
        return ""
    return _paragraph(
        "Memory outside PyTorch (context, cuBLAS, cuDNN) is modelled from measurements: after the "
        f"last step it was within {max(errors) / MIB:.0f} MiB of what NVML reports in each of the "
        f"{len(errors)} equal cases, and within 4 MiB in {sum(e <= 4 * MIB for e in errors)}. "
        "Single operations, recorded in "
        "`ground_truth/h200/micro_ops.json.gz`, are compared by "
        "`ground_truth/harness/compare_micro.py`."
    )


def _paragraph(text: str) -> str:
    return textwrap.fill(text, 110, break_long_words=False, break_on_hyphens=False)


def read_searches(path: Path) -> dict[str, int]:
    return {s["case"]: s["largest_batch"] for s in json.loads(path.read_text())["searches"]}


def replace_section(text: str, new: str) -> str:
    """The text with the part between the two marks replaced."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"the marks {BEGIN} and {END} are missing")
    return f"{before}{BEGIN}\n{new}{END}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("replay", type=Path)
    parser.add_argument("--largest-batch", type=Path)
    parser.add_argument("--write", type=Path, metavar="PAGE")
    options = parser.parse_args()
    ours = read_searches(options.largest_batch) if options.largest_batch else {}
    text = section(
        read_results(REAL),
        compare_folders(REAL, options.replay),
        read_deviations(HERE.parent / "known_deviations.toml"),
        (read_searches(REAL / "largest_batch.json"), ours),
    )
    if options.write:
        options.write.write_text(replace_section(options.write.read_text(), text))
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
