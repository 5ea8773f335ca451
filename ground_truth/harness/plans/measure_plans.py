"""Runs the plans of `make_plans.py` on a real H200 with capped memory.

    python ground_truth/harness/plans/measure_plans.py \\
        --plans ground_truth/h200/plans/plans.jsonl --out measured.jsonl --seconds 440

Every plan is launched as `ghostgpu launch` does it, in a process of its own: tricks in the
environment, the script unmodified. PyTorch may reserve what the virtual card left it: the card's
memory less what CUDA and its libraries took. What is measured, in this order:

- `capped`: twenty steps of the recommended plan under the cap: ends, peaks, time of a step;
- `plain`: the same job without tricks and without a cap: time of a step;
- `largest`: the batch that was said to be the largest with these tricks ends, and one that is
  larger by 3 % does not; for the first few the largest that does is searched for;
- `rival`: what the batch-size finders of accelerate and Lightning come to under the same cap;
- `other`: the time of other plans of the same job, without a cap.

`capped`, `plain`, `rival` and `other` have the card to themselves while they use it. Each result is
a line of JSON; lines that the file has already are not measured again.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Callable

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(HERE.parent))
STEPS = 20
#: Enough for a time: the first few load kernels and fill PyTorch's cache.
STEPS_FOR_TIME = 7
#: What allocates in the first steps does so in all later ones.
STEPS_FOR_MEMORY = 5
WARM_UP = 3
#: Longer than any of these runs.
TIMEOUT_S = 120
#: How many pairs have their true largest batch searched for.
SEARCHED = 10
#: How many other plans of a job have their time measured.
OTHERS = 2
RIVALS_FOR = ("bert on 11 GiB", "gpt2 on 11 GiB", "resnet50 on 11 GiB")
SHARE = 0.97
#: How a run ends that says something about memory.
ANSWERS = ("ended", "out-of-memory")

Line = dict[str, Any]


@dataclass
class Card:
    """The card, and the time and the file that this measurement has."""

    out: Path
    deadline: float
    present: dict[str, Line] = field(default_factory=dict)
    writing: threading.Lock = field(default_factory=threading.Lock)

    @property
    def lock(self) -> str:
        return f"{self.out}.lock"

    @property
    def is_over(self) -> bool:
        return time.time() > self.deadline

    def once(self, name: str, measured: Callable[[], Line]) -> Line:
        """A line of the file, measured now if it is not there."""
        if name in self.present:
            return self.present[name]
        if self.is_over:
            return {"outcome": "no-time"}
        line = {"name": name, **measured()}
        if line["outcome"] != "no-time":
            with self.writing:
                self.present[name] = line
                with self.out.open("a") as file:
                    file.write(json.dumps(line) + "\n")
                shown = {key: line[key] for key in line if key != "did"}
                print(json.dumps(shown), flush=True)
        return line

    def run(
        self,
        pair: Line,
        tricks: list[Line],
        steps: int,
        limit: int = 0,
        batch: int | None = None,
        is_alone: bool = True,
    ) -> Line:
        """One run of a pair's script in a process of its own."""
        script, arguments = pair["script"], list(pair["arguments"])
        if batch is not None:
            arguments[arguments.index("--batch-size") + 1] = str(batch)
        command = [str(HERE / "scripts" / script), *arguments, "--steps", str(steps)]
        return self.execute(command, tricks, limit, is_alone)

    def execute(self, command: list[str], tricks: list[Line], limit: int, is_alone: bool) -> Line:
        with tempfile.TemporaryDirectory() as folder:
            answer = Path(folder) / "answer.json"
            words = [
                *(sys.executable, str(HERE / "capped.py"), str(limit)),
                *(self.lock if is_alone else "-", str(self.deadline), str(answer)),
                *command,
            ]
            try:
                ended = subprocess.run(
                    words,
                    cwd=folder,
                    env=launched_environment(tricks),
                    capture_output=True,
                    text=True,
                    timeout=max(self.deadline - time.time(), 0) + TIMEOUT_S,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return {"outcome": "timed-out"}
            if not answer.exists():
                return {"outcome": "failed", "text": ended.stderr[-1200:]}
            line: Line = json.loads(answer.read_text())
        times = [float(text.split()[-2]) for text in ended.stdout.splitlines() if is_step(text)]
        line["steps"] = len(times)
        if len(times) > WARM_UP and is_alone:
            line["step_seconds"] = round(statistics.median(times[WARM_UP:]), 5)
        accounts = [text for text in ended.stderr.splitlines() if text.startswith("ghostgpu: ")]
        return {**line, "did": accounts} if tricks else line


def is_step(text: str) -> bool:
    return text.startswith("step ") and text.endswith(" s")


def launched_environment(tricks: list[Line]) -> dict[str, str]:
    """What `ghostgpu launch` adds to the environment."""
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "TOKENIZERS_PARALLELISM": "false"}
    if tricks:
        inject = ROOT / "python" / "ghostgpu" / "tricks" / "inject"
        environment["GHOSTGPU_TRICKS"] = json.dumps(tricks)
        environment["PYTHONPATH"] = str(inject)
    return environment


def reservable(pair: Line) -> int:
    """What PyTorch could reserve on the virtual card."""
    best = pair["recommended"]
    outside = best["peak_device_bytes"] - best["peak_reserved_bytes"]
    return int(pair["capacity_bytes"] - outside)


def capped(card: Card, pair: Line) -> None:
    tricks, limit = pair["recommended"]["tricks"], reservable(pair)
    card.once(
        f"{pair['name']}/capped",
        lambda: {"limit": limit, **card.run(pair, tricks, STEPS, limit)},
    )


def plain(card: Card, pair: Line) -> None:
    # A job in its own words: two caps may have the same batch.
    name = " ".join([pair["script"], *pair["arguments"]])
    card.once(f"{name}/plain", lambda: card.run(pair, [], STEPS_FOR_TIME))


def other(card: Card, pair: Line) -> None:
    for candidate in pair["others"][:OTHERS]:
        measured = partial(card.run, pair, candidate["tricks"], STEPS_FOR_TIME)
        card.once(f"{pair['name']}/other {candidate['in_words']}", measured)


def largest(card: Card, pair: Line, is_searched: bool) -> None:
    """Run the batch that was said to be the largest, and larger ones."""
    if not pair["largest_batch"]:
        return
    said = int(pair["largest_batch"]["batch"])
    tricks, limit = pair["recommended"]["tricks"], reservable(pair)

    def ends(batch: int) -> bool | None:
        line = card.once(
            f"{pair['name']}/largest {batch}",
            lambda: {
                "batch": batch,
                **card.run(pair, tricks, STEPS_FOR_MEMORY, limit, batch, is_alone=False),
            },
        )
        return {"ended": True, "out-of-memory": False}.get(line["outcome"])

    most, too_large = said, int(said / SHARE) + 1
    if ends(said) is None or ends(too_large) is None or not is_searched:
        return
    while ends(too_large):
        most, too_large = too_large, too_large + max(too_large // 20, 1)
    while too_large - most > 1:
        middle = (most + too_large) // 2
        answer = ends(middle)
        if answer is None:
            return
        most, too_large = (middle, too_large) if answer else (most, middle)


def rival(card: Card, pair: Line, tool: str) -> None:
    model = pair["arguments"][0]
    command = [str(HERE / "rivals.py"), tool, model, "--wanted", str(pair["batch"])]

    def measured() -> Line:
        with tempfile.TemporaryDirectory() as folder:
            found = Path(folder) / "found.json"
            line = card.execute([*command, "--found", str(found)], [], reservable(pair), True)
            return {**line, **(json.loads(found.read_text()) if found.exists() else {})}

    card.once(f"{pair['name']}/rival {tool}", measured)


def all_of(pool: ThreadPoolExecutor, work: Iterable[Callable[[], None]]) -> None:
    for future in [pool.submit(each) for each in work]:
        future.result()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--plans", type=Path, nargs="+", required=True, help="of two for one pair, the first counts"
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=440, help="begin nothing after this long")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--only", default="", help="pairs with this text in their names")
    options = parser.parse_args()
    begin = time.time()
    by_name: dict[str, Line] = {}
    for file in filter(Path.exists, options.plans):
        for line in map(json.loads, file.read_text().splitlines()):
            by_name.setdefault(line["name"], line)
    # Beside what they come to, for `results.py`.
    kept = "".join(json.dumps(pair) + "\n" for pair in by_name.values())
    (options.out.resolve().parent / "plans.jsonl").write_text(kept)
    pairs = [
        pair for pair in by_name.values() if pair["recommended"] and options.only in pair["name"]
    ]
    text = options.out.read_text() if options.out.exists() else ""
    lines = [json.loads(line) for line in text.splitlines()]
    # What failed for another reason than memory is tried again.
    present = {line["name"]: line for line in lines if line["outcome"] in ANSWERS}
    card = Card(options.out.resolve(), begin + options.seconds, present)
    from run_case import environment_facts

    # Not alone: asking for the card's name must not make this process hold a context.
    facts = environment_facts(on_card=False)
    card.once("environment", lambda: {"outcome": "ended", **facts})
    rivals = [pair for pair in pairs if pair["name"] in RIVALS_FOR]
    phases: list[tuple[str, list[Callable[[], None]]]] = [
        ("capped", [partial(capped, card, pair) for pair in pairs]),
        ("plain", [partial(plain, card, pair) for pair in pairs]),
        (
            "largest",
            [partial(largest, card, pair, place < SEARCHED) for place, pair in enumerate(pairs)],
        ),
        (
            "rival",
            [
                partial(rival, card, pair, tool)
                for pair in rivals
                for tool in ("accelerate", "lightning")
            ],
        ),
        ("other", [partial(other, card, pair) for pair in pairs]),
    ]
    with ThreadPoolExecutor(options.workers) as pool:
        for name, work in phases:
            all_of(pool, work)
            print(f"{name}: {time.time() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()
