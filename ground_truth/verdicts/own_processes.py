"""The smallest memory of whole trainings on a real card, each run in a process of its own.

    python ground_truth/verdicts/own_processes.py --out FILE [--jobs a,b] [--workers 14]

`smallest_limits.py` runs its trainings in forks of one process. Their host addresses differ from
those of a training that a user starts, and with them the addresses that the driver gives segments.
This starts from the limits recorded there and looks for the edge again: the smallest limit at which
a training ends although it does not with 2 MiB less. Around an edge success is not monotonic, so
the limits just above are run too; `steady_limit_bytes` is the smallest from which all are enough.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "harness"))

from limited_histories import run_elsewhere
from smallest_limits import SEGMENT_BYTES

from run_case import environment_facts

RECORDING = HERE.parent / "h200/verdicts/verdicts.json"
#: So many limits above an edge must be enough, as `ghostgpu run` asks of its replays.
STEADY = 3


class Edge:
    """One job's runs, by limit in units of 2 MiB."""

    def __init__(self, command: str) -> None:
        self.command = command
        self.outcomes: dict[int, str] = {}

    def ends(self, limit: int) -> bool:
        if limit not in self.outcomes:
            run = {
                "command": self.command,
                "limit_bytes": limit * SEGMENT_BYTES,
                "is_forked": False,
                "history": None,
            }
            self.outcomes[limit] = run_elsewhere(run)["outcome"]
        outcome = self.outcomes[limit]
        if outcome not in {"ended", "out-of-memory"}:
            raise RuntimeError(f"{self.command} at {limit * SEGMENT_BYTES} bytes: {outcome}")
        return outcome == "ended"

    def search_from(self, known: int) -> int:
        """The edge nearest to a limit that was one."""
        stride = 1
        if self.ends(known):
            ends = known
            while self.ends(ends - stride):
                ends, stride = ends - stride, 2 * stride
            fails = ends - stride
        else:
            fails = known
            while not self.ends(fails + stride):
                fails, stride = fails + stride, 2 * stride
            ends = fails + stride
        while ends - fails > 1:
            middle = (ends + fails) // 2
            if self.ends(middle):
                ends = middle
            else:
                fails = middle
        return ends

    def steady_from(self, edge: int) -> int:
        """The smallest limit from the edge on with which the next ones are enough, too."""
        steady = edge
        while True:
            above = [limit for limit in range(steady, steady + STEADY + 1) if not self.ends(limit)]
            if not above:
                return steady
            steady = above[-1] + 1


def measure(item: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    name, recorded = item
    began = time.monotonic()
    edge = Edge(recorded["command"])
    result: dict[str, Any] = {"command": recorded["command"]}
    try:
        smallest = edge.search_from(recorded["smallest_limit_bytes"] // SEGMENT_BYTES)
        result["smallest_limit_bytes"] = smallest * SEGMENT_BYTES
        result["steady_limit_bytes"] = edge.steady_from(smallest) * SEGMENT_BYTES
    except RuntimeError as error:
        result["failed"] = str(error)
    result["runs"] = {
        str(limit * SEGMENT_BYTES): outcome for limit, outcome in sorted(edge.outcomes.items())
    }
    result["seconds"] = round(time.monotonic() - began, 1)
    return name, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", help="only these, separated by commas")
    parser.add_argument("--workers", type=int, default=14)
    parser.add_argument(
        "--recording", type=Path, default=RECORDING, help="what `smallest_limits.py` wrote"
    )
    options = parser.parse_args()
    recorded = json.loads(options.recording.read_text())["verdicts"]
    names = options.jobs.split(",") if options.jobs else sorted(recorded)
    # The longest first, so that no worker is left with one at the end.
    names.sort(key=lambda name: -recorded[name]["seconds"])
    facts: dict[str, Any] = {
        "command": "python ground_truth/verdicts/own_processes.py --out FILE",
        "environment": environment_facts(True),
        "jobs": {},
    }
    with ThreadPoolExecutor(options.workers) as pool:
        for done in as_completed([pool.submit(measure, (name, recorded[name])) for name in names]):
            name, result = done.result()
            facts["jobs"][name] = result
            print(
                name,
                recorded[name]["smallest_limit_bytes"],
                result.get("smallest_limit_bytes"),
                result.get("steady_limit_bytes"),
                result.get("failed", ""),
                f"{result['seconds']} s",
                flush=True,
            )
            # Written after each, so that a run that is cut off leaves what it had.
            options.out.write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
