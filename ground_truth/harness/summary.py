"""One line per result, for people."""

from __future__ import annotations

from typing import Any

GIB = 2**30


def table(results: list[dict[str, Any]]) -> str:
    rows = [line(result) for result in sorted(results, key=lambda r: (r["family"], r["case"]))]
    heading = (
        f"{'case':52} {'outcome':9} {'allocated':>14} {'reserved':>14} {'allocs':>8} {'retries':>7}"
    )
    counts: dict[str, int] = {}
    for result in results:
        counts[result["outcome"]] = counts.get(result["outcome"], 0) + 1
    total = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
    return "\n".join([heading, *rows, f"{len(results)} cases: {total}"]) + "\n"


def line(result: dict[str, Any]) -> str:
    name, outcome = result["case"], result["outcome"]
    last = result.get("final") or (result["steps"][-1] if result["steps"] else None)
    if not last:
        reason = (result.get("failure") or "").strip().splitlines()
        return f"{name:52} {outcome:9} {reason[-1][:90] if reason else ''}"
    return (
        f"{name:52} {outcome:9} {last['peak_allocated_bytes']:14} {last['peak_reserved_bytes']:14} "
        f"{last['allocations'] or 0:8} {last['retries'] or 0:7}"
    )
