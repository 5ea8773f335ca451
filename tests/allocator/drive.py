"""Drives PyTorch's own allocator with random operations, and writes down all that it did.

    ghostgpu run --gpu h200 --memory 4GiB --steps 0 -- python drive.py --plan full --out FILE

On the virtual card PyTorch's C++ allocator is the real one; only the driver below it is ours. The
file is text, one line per fact, so that the first difference can be read. At the top:

    release VERSION, total BYTES BYTES_OF_DRIVER, free BYTES, settings TEXT
    stream NUMBER HANDLE PYTORCHS_NUMBER

An operation:

    malloc ID BYTES STREAM, free ID, record ID STREAM, flush, reset-peak, reset-sums,
    fraction PART, settings TEXT, pool NAME A B USE_ON_OOM, enter NAME, leave NAME, drop NAME

and what it led to:

    = ADDRESS, or ! TEXT               what a malloc got
    key NUMBER KEY                     a statistic, when it is first seen
    + NUMBER VALUE ...                 those that changed; all others have not

Now and then the segments, and all of the trace at the end:

    s ADDRESS TOTAL STREAM KIND POOL EXPANDABLE SIZE:ASKED:STATE,...
    end-of-segments
    t ACTION ADDRESS BYTES STREAM
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TextIO

import torch

MIB = 1 << 20
STREAMS = 5
RELEASE = tuple(int(part) for part in torch.__version__.split(".")[:2])


@dataclass(frozen=True)
class Plan:
    """Settings, and how operations are chosen."""

    settings: str = ""
    streams: int = 1
    uses_on_other_streams: bool = False
    pools: bool = False
    drops_pools: bool = True
    """Not with expandable segments: PyTorch then deletes a pool whose blocks are still in use."""
    fraction: float | None = None
    largest_mib: int = 96
    live_mib: int = 1500
    """What the plan tries to keep allocated: beyond it frees become likelier."""
    held_mib: int = 0
    """Allocated first and kept, so that memory soon runs out."""
    changes_settings: tuple[str, ...] = ()
    since: tuple[int, int] = (2, 8)
    """The first release that has these options."""


PLANS: dict[str, Plan] = {
    "default": Plan(),
    "streams": Plan(streams=STREAMS, uses_on_other_streams=True),
    "expandable": Plan("expandable_segments:True"),
    "expandable-streams": Plan(
        "expandable_segments:True", streams=STREAMS, uses_on_other_streams=True
    ),
    "split": Plan("max_split_size_mb:32"),
    "split-rounding": Plan("max_split_size_mb:24,max_non_split_rounding_mb:40", live_mib=2500),
    "split-expandable": Plan("expandable_segments:True,max_split_size_mb:32"),
    "divisions": Plan("roundup_power2_divisions:4"),
    "division-list": Plan("roundup_power2_divisions:[1:8,4:4,16:2,>:1]"),
    "large-segments": Plan("large_segment_size_mb:64", since=(2, 11)),
    "large-segments-expandable": Plan(
        "large_segment_size_mb:32,expandable_segments:True", since=(2, 11)
    ),
    "collect": Plan("garbage_collection_threshold:0.6", fraction=0.2, live_mib=1200),
    "collect-split": Plan(
        "garbage_collection_threshold:0.5,max_split_size_mb:40", fraction=0.25, live_mib=1500
    ),
    "limit": Plan(fraction=0.15, live_mib=1400),
    "full": Plan(held_mib=2900),
    "full-streams": Plan(streams=STREAMS, uses_on_other_streams=True, held_mib=2800),
    "full-expandable": Plan("expandable_segments:True", streams=2, held_mib=2900),
    "full-split": Plan("max_split_size_mb:32", held_mib=2900),
    "pools": Plan(pools=True),
    "pools-streams": Plan(pools=True, streams=STREAMS, uses_on_other_streams=True),
    "pools-full": Plan(pools=True, held_mib=2900),
    "pools-expandable": Plan(
        "expandable_segments:True", pools=True, drops_pools=False, since=(2, 10)
    ),
    "small-reserve": Plan(
        "expandable_segments:True,expandable_segments_reserve:0.02", since=(2, 15)
    ),
    "small-reserve-streams": Plan(
        "expandable_segments:True,expandable_segments_reserve:0.0625G",
        streams=STREAMS,
        uses_on_other_streams=True,
        since=(2, 15),
    ),
    "fraction-option": Plan("per_process_memory_fraction:0.15", since=(2, 10)),
    "rejecting": Plan(
        "per_process_memory_fraction:0.15,throw_on_cudamalloc_oom:True", since=(2, 12)
    ),
    "switching": Plan(
        changes_settings=(
            "expandable_segments:True",
            "expandable_segments:False",
            "max_split_size_mb:64",
            "roundup_power2_divisions:2",
        )
    ),
}


def flattened(stats: dict[str, Any]) -> dict[str, int]:
    return {key: value for key, value in stats.items() if isinstance(value, int)}


@dataclass
class Driver:
    """The state of one run."""

    plan: Plan
    chance: random.Random
    out: TextIO
    streams: list[Any] = field(default_factory=list)
    live: dict[int, tuple[torch.Tensor, int]] = field(default_factory=dict)
    live_bytes: int = 0
    named: int = 0
    last_stats: dict[str, int] = field(default_factory=dict)
    keys: dict[str, int] = field(default_factory=dict)
    held: tuple[torch.Tensor, int] | None = None
    stats_every: int = 1
    steps: int = 0
    pools: dict[str, Any] = field(default_factory=dict)
    scopes: list[tuple[str, Any]] = field(default_factory=list)
    usual_sizes: list[int] = field(default_factory=list)

    def say(self, *words: object) -> None:
        print(*words, file=self.out)

    def start(self) -> None:
        torch.cuda.init()
        self.streams = [torch.cuda.default_stream()]
        self.streams += [torch.cuda.Stream() for _ in range(self.plan.streams - 1)]
        torch.cuda.memory._record_memory_history(max_entries=10_000_000, context=None)
        self.usual_sizes = [self.any_size() for _ in range(12)]
        free, total = torch.cuda.mem_get_info()
        self.say("release", torch.__version__)
        self.say("total", torch.cuda.get_device_properties(0).total_memory, total)
        self.say("free", free)
        self.say("settings", self.plan.settings)
        for number, stream in enumerate(self.streams):
            self.say("stream", number, stream.cuda_stream, stream.stream_id)
        self.note_stats()
        if self.plan.fraction is not None:
            torch.cuda.set_per_process_memory_fraction(self.plan.fraction)
            self.say("fraction", self.plan.fraction)
        if self.plan.held_mib:
            self.malloc(self.plan.held_mib * MIB)
            self.held = self.live.pop(self.named)
            self.live_bytes = 0
            self.note_stats()

    def any_size(self) -> int:
        kind = self.chance.random()
        if kind < 0.45:
            return int(2 ** self.chance.uniform(0, 20))
        if kind < 0.8:
            return int(2 ** self.chance.uniform(20, 24))
        if kind < 0.85:
            edge = self.chance.choice([512, MIB, 2 * MIB, 10 * MIB, 20 * MIB, 32 * MIB])
            return max(1, edge + self.chance.choice([-513, -512, -1, 0, 1, 512]))
        return int(self.chance.uniform(10 * MIB, self.plan.largest_mib * MIB))

    def size(self) -> int:
        if self.chance.random() < 0.5:
            return self.chance.choice(self.usual_sizes)
        return self.any_size()

    def note_stats(self) -> None:
        stats = flattened(torch.cuda.memory_stats())
        words = ["+"]
        for key, value in stats.items():
            if self.last_stats.get(key) != value:
                if key not in self.keys:
                    self.keys[key] = len(self.keys)
                    self.say("key", self.keys[key], key)
                words += [str(self.keys[key]), str(value)]
        self.say(*words)
        self.last_stats = stats

    def note_segments(self) -> None:
        for segment in torch.cuda.memory_snapshot():
            blocks = ",".join(
                f"{block['size']}:{block['requested_size']}:{block['state']}"
                for block in segment["blocks"]
            )
            pool = segment["segment_pool_id"]
            self.say(
                "s",
                segment["address"],
                segment["total_size"],
                segment["stream"],
                segment["segment_type"],
                f"{pool[0]},{pool[1]}",
                int(segment["is_expandable"]),
                blocks,
            )
        self.say("end-of-segments")

    def malloc(self, size: int | None = None) -> None:
        size = size or self.size()
        number = self.chance.randrange(len(self.streams))
        self.named += 1
        self.say("malloc", self.named, size, number)
        try:
            with torch.cuda.stream(self.streams[number]):
                tensor = torch.empty(size, dtype=torch.uint8, device="cuda")
        except torch.cuda.OutOfMemoryError as error:
            self.say("!", str(error).splitlines()[0])
            return
        self.live[self.named] = (tensor, number)
        self.live_bytes += size
        self.say("=", tensor.data_ptr())

    def free(self) -> None:
        if not self.live:
            return
        names = list(self.live)
        # Mostly the youngest, as in a program.
        back = min(int(self.chance.expovariate(0.05)), len(names) - 1)
        name = names[-1 - back] if self.chance.random() < 0.7 else self.chance.choice(names)
        self.say("free", name)
        tensor, _ = self.live.pop(name)
        self.live_bytes -= tensor.numel()
        del tensor

    def record(self) -> None:
        if not self.live:
            return
        name = self.chance.choice(list(self.live))
        number = self.chance.randrange(len(self.streams))
        self.say("record", name, number)
        self.live[name][0].record_stream(self.streams[number])

    def flush(self) -> None:
        if self.scopes and RELEASE <= (2, 8):
            return  # An internal assertion of that release.
        self.say("flush")
        torch.cuda.empty_cache()

    def free_many(self) -> None:
        for _ in range(self.chance.randrange(5, 60)):
            self.free()

    def reset(self) -> None:
        if self.chance.random() < 0.5:
            self.say("reset-peak")
            torch.cuda.reset_peak_memory_stats()
        else:
            self.say("reset-sums")
            torch.cuda.reset_accumulated_memory_stats()

    def set_settings(self) -> None:
        text = self.chance.choice(self.plan.changes_settings)
        self.say("settings", text)
        torch.cuda.memory._set_allocator_settings(text)

    def turn_pools(self) -> None:
        """Make, enter, leave or drop a pool."""
        what = self.chance.random()
        if what < 0.3 and len(self.pools) < 3:
            self.named += 1
            name = f"pool{self.named}"
            helps = self.chance.random() < 0.3
            self.pools[name] = pool = torch.cuda.MemPool(use_on_oom=helps)
            self.say("pool", name, pool.id[0], pool.id[1], int(helps))
        elif what < 0.6 and self.pools and len(self.scopes) < 2:
            name = self.chance.choice(list(self.pools))
            if any(open_name == name for open_name, _ in self.scopes):
                return
            self.say("enter", name)
            scope = torch.cuda.use_mem_pool(self.pools[name])
            scope.__enter__()
            self.scopes.append((name, scope))
        elif what < 0.9 and self.scopes:
            name, scope = self.scopes.pop()
            self.say("leave", name)
            scope.__exit__(None, None, None)
        elif self.pools and not self.scopes and self.plan.drops_pools:
            name = self.chance.choice(list(self.pools))
            self.say("drop", name)
            del self.pools[name]

    def step(self) -> None:
        pressure = self.live_bytes / (self.plan.live_mib * MIB)
        choices: list[tuple[float, Callable[[], None]]] = [
            (1.0, self.malloc),
            (0.35 + 0.65 * pressure**2, self.free),
            (0.004, self.flush),
            (0.01, self.free_many),
            (0.004, self.reset),
            (0.1 if self.plan.uses_on_other_streams else 0.0, self.record),
            (0.08 if self.plan.pools else 0.0, self.turn_pools),
            (0.02 if self.plan.changes_settings else 0.0, self.set_settings),
        ]
        weights = [weight for weight, _ in choices]
        self.chance.choices([act for _, act in choices], weights)[0]()
        self.steps += 1
        if self.steps % self.stats_every == 0:
            self.note_stats()

    def finish(self) -> None:
        while self.scopes:
            name, scope = self.scopes.pop()
            self.say("leave", name)
            scope.__exit__(None, None, None)
            self.note_stats()
        if self.held is not None:
            self.say("free", 1)
            self.held = None
        for number in list(self.live):
            self.say("free", number)
            del self.live[number]
        self.note_stats()
        self.note_segments()
        self.say("flush")
        torch.cuda.empty_cache()
        self.note_stats()
        self.note_segments()
        self.write_trace()

    def write_trace(self) -> None:
        for entry in torch.cuda.memory._snapshot()["device_traces"][0]:
            address = entry.get("addr", entry.get("device_free", 0))
            self.say("t", entry["action"], address, entry["size"], entry["stream"])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--plan", choices=sorted(PLANS), required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--operations", type=int, default=2000)
    parser.add_argument("--segments-every", type=int, default=50)
    parser.add_argument("--stats-every", type=int, default=1)
    parser.add_argument("--out", required=True)
    words = parser.parse_args()
    plan = PLANS[words.plan]
    if plan.since > RELEASE:
        sys.exit(f"torch {torch.__version__} has no such options")
    if plan.settings:
        torch.cuda.memory._set_allocator_settings(plan.settings)
    with open(words.out, "w") as out:
        driver = Driver(plan, random.Random(words.seed), out, stats_every=words.stats_every)
        driver.start()
        try:
            for number in range(words.operations):
                driver.step()
                if number % words.segments_every == 0:
                    driver.note_segments()
        except RuntimeError as error:
            if "INTERNAL ASSERT" not in str(error):
                raise
            # A fault of this release's own: the story ends before the last operation.
            driver.say("!", str(error).splitlines()[0])
            driver.write_trace()
        else:
            driver.finish()


if __name__ == "__main__":
    main()
