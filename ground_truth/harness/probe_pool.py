"""Where the driver's stream-ordered pool puts allocations while the card still has work to do.

    python ground_truth/harness/probe_pool.py --out pool.json.gz [--replay operations.json.gz]

A gate (a wait in the stream for a number in host memory) holds the stream back, so that frees stay
pending exactly as long as the script says. One row per operation: what, which allocation, bytes,
offset from the pool's first address, and the bytes that the pool holds after it.
"""

from __future__ import annotations

import argparse
import ctypes
import gzip
import json
import random
import sys
import threading
import time
from ctypes import byref, c_int, c_size_t, c_uint, c_ulonglong, c_void_p
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from probe import cuda_calls as cuda
from probe.cuda_calls import MIB

RESERVED_NOW = 5
RELEASE_THRESHOLD = 4


class Gate:
    """Holds the default stream back until it is opened; a watchdog opens it if a call hangs."""

    def __init__(self) -> None:
        pointer = c_void_p()
        cuda.runtime.check("cudaHostAlloc", byref(pointer), c_size_t(4096), c_uint(2))
        self.address = int(pointer.value or 0)
        self.number = ctypes.c_uint32.from_address(self.address)
        self.number.value = 0
        self.closed = 0
        self.busy_since = 0.0
        self.stalled = False
        threading.Thread(target=self._watch, daemon=True).start()

    def close(self) -> None:
        self.closed += 1
        for name in ("cuStreamWaitValue32_v2", "cuStreamWaitValue32"):
            try:
                cuda.driver.check(
                    name, c_void_p(0), c_ulonglong(self.address), c_uint(self.closed), c_uint(0)
                )
                return
            except LookupError:
                continue

    def open(self, number: int | None = None) -> None:
        """Lets the stream go on up to the gate of that number, or through all of them."""
        self.number.value = self.closed if number is None else number

    def _watch(self) -> None:
        while True:
            time.sleep(0.05)
            if self.busy_since and time.monotonic() - self.busy_since > 0.5:
                self.stalled = True
                self.open()


class Pool:
    """The default pool of device 0, with a log of what each call did to it."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.handle = c_void_p()
        cuda.runtime.check("cudaDeviceGetDefaultMemPool", byref(self.handle), c_int(0))
        value = c_ulonglong(0xFFFFFFFFFFFFFFFF)
        cuda.runtime.check(
            "cudaMemPoolSetAttribute", self.handle, c_int(RELEASE_THRESHOLD), byref(value)
        )
        self.malloc = cuda.runtime.find("cudaMallocAsync")
        self.free_async = cuda.runtime.find("cudaFreeAsync")
        self.attribute = cuda.runtime.find("cudaMemPoolGetAttribute")
        self.first: int | None = None
        self.rows: list[list[Any]] = []
        self.live: dict[Any, int] = {}

    def note(self, *what: Any) -> None:
        reserved = c_ulonglong()
        self.attribute(self.handle, c_int(RESERVED_NOW), byref(reserved))
        row = [*what, reserved.value]
        if self.gate.stalled:
            row.append("stalled")
            self.gate.stalled = False
        self.rows.append(row)

    def allocate(self, name: Any, size: int) -> None:
        pointer = c_void_p()
        self.gate.busy_since = time.monotonic()
        status = self.malloc(byref(pointer), c_size_t(size), c_void_p(0))
        self.gate.busy_since = 0.0
        if status:
            cuda.runtime.call("cudaGetLastError")
            self.note("!", name, size, status)
            return
        address = int(pointer.value or 0)
        self.first = address if self.first is None else self.first
        self.live[name] = address
        self.note("+", name, size, address - self.first)

    def free(self, name: Any) -> None:
        address = self.live.pop(name)
        self.gate.busy_since = time.monotonic()
        self.free_async(c_void_p(address), c_void_p(0))
        self.gate.busy_since = 0.0
        self.note("-", name, 0, address - (self.first or 0))

    def do(self, what: str, number: int | None = None) -> None:
        if what == "close":
            self.gate.close()
        elif what == "open":
            self.gate.open(None if number is None else self.gate.closed + 1 - number)
        elif what == "sleep":
            time.sleep(0.003)
        elif what == "query":
            cuda.runtime.call("cudaStreamQuery", c_void_p(0))
        elif what == "stream-sync":
            self.gate.open()
            cuda.runtime.check("cudaStreamSynchronize", c_void_p(0))
        elif what == "device-sync":
            self.gate.open()
            cuda.runtime.check("cudaDeviceSynchronize")
        self.note(what, number, 0, 0)

    def reset(self) -> list[list[Any]]:
        """Empties the pool; the rows since the last time."""
        self.gate.open()
        for address in self.live.values():
            self.free_async(c_void_p(address), c_void_p(0))
        self.live.clear()
        cuda.runtime.check("cudaDeviceSynchronize")
        cuda.runtime.check("cudaMemPoolTrimTo", self.handle, c_size_t(0))
        rows, self.rows, self.first = self.rows, [], None
        return rows


def script(pool: Pool, text: str) -> list[list[Any]]:
    """Runs operations such as `+a12 -a close +b3.5 stream-sync`; sizes are in MiB."""
    for word in text.split():
        if word[0] == "+":
            pool.allocate(word[1], int(float(word[2:]) * MIB))
        elif word[0] == "-":
            pool.free(word[1])
        elif ":" in word:
            name, number = word.split(":")
            pool.do(name, int(number))
        else:
            pool.do(word)
    return pool.reset()


#: Holes of 10, 9, 11 and 8.5 MiB between allocations that stay (m to q), freed in the order given.
FOUR_HOLES = "+a10 +m1 +b9 +n1 +c11 +o1 +d8.5 +p1 {} {} {} {} {} +x8 +y8 +z8 +w8"
#: Holes of 8 (a), 6 (b) and 10 (c) MiB; some are complete, the others pending.
THREE_HOLES = "+a8 +m1 +b6 +n1 +c10 +o1 {} stream-sync close {} +x5 +y5 +z5"


def crafted() -> list[str]:
    """Short sequences, each about one question."""
    scripts = [
        "+a12 +b3 close -a +c4 +d4 +e6 +f20",
        "+a12 -a +c14",
        "+a12 close -a +c14",
        "+a12 close -a +c20 +d4 +e12",
        "+a12 close -a sleep open sleep +c14",
        "+a12 close -a open sleep query +c14",
        "+a12 close -a stream-sync +c14",
        "+a4 +b4 +c4 +d4 close -a -b +x8",
        "+a4 +b4 +c4 +d4 close -b -a +x8",
        "+a4 +b4 +c4 +d4 close -a close -b +x8",
        "+a4 +b4 +c4 +d4 close -a close -b open:2 sleep +x8",
        "+a4 +b4 +c4 +d4 -a stream-sync close -b +x8",
        "+a4 +b4 +c4 +d4 -b stream-sync close -a +x8",
        "+a4 +b4 +c4 +d4 close -a -c -b +x10",
        # Splitting a pending hole, then freeing the part again.
        "+a16 +m1 close -a +x4 +y4 -x +z8 -y +w12 +v4",
        # Growing next to a pending end, and the result.
        "+a40 close -a +b50 +c30 +d8 stream-sync +e8 +f40",
        "+a40 close -a +b41 stream-sync +c41",
        "+a20 +b20 close -b +c30 +d20 +e10",
        # Granules that only pending frees touched: can they move?
        "+a96 +m1 +b31 close -a +c128 +d96",
        "+a96 +m1 +b31 -a stream-sync close +c128 +d96",
        "+a96 +m1 +b31 -a stream-sync +c128 +d96",
        "+a96 +m1 +b31 -a sleep +c128 +d96",
        "+a100 +m1 +b100 +n1 close -a -b +c180 +d100 +e100",
        # Thousands of bytes instead of mebibytes.
        "+a0.016 +m1 +b0.016 close -a +x0.004 -b +y0.004 +z0.016",
        "+a12 +m3 +b12 close -b +i0.016 +j0.016 +k36 +x12 +y12 +z0.2 +w3",
    ]
    for preparation in ("", "close"):
        for order in ("abcd", "dcba", "bdac", "cadb"):
            frees = [f"-{name}" for name in order]
            scripts.append(FOUR_HOLES.format(preparation, *frees))
            if not preparation:
                scripts.append(FOUR_HOLES.format(*frees, "stream-sync"))
    for complete in ("a", "b", "c", "ab", "bc", "ac"):
        pending = [name for name in "abc" if name not in complete]
        scripts.append(
            THREE_HOLES.format(
                " ".join(f"-{name}" for name in complete), " ".join(f"-{name}" for name in pending)
            )
        )
    return scripts


def at_random(pool: Pool, seed: int, *, held_back: bool) -> list[list[Any]]:
    """A few hundred operations such as training makes; syncs now and then."""
    chance = random.Random(seed)
    sizes = [0.004, 0.016, 0.19, 1, 3, 12, 12, 12, 48, 7.5, 25, 33, 100]
    next_name = 0
    if held_back:
        pool.do("close")
    for _ in range(400):
        dice = chance.random()
        if dice < 0.01:
            pool.do("stream-sync")
            if held_back:
                pool.do("close")
        elif pool.live and dice < (0.35 if len(pool.live) < 30 else 0.6):
            pool.free(chance.choice(sorted(pool.live)))
        else:
            size = chance.choice(sizes) * chance.choice((1, 1, 1, chance.uniform(0.5, 1.5)))
            pool.allocate(next_name, max(1, int(size * MIB)))
            next_name += 1
    return pool.reset()


def replay(pool: Pool, operations: list[list[Any]], *, held_back: bool) -> list[list[Any]]:
    """A recorded training run's operations: allocations, frees, synchronisations."""
    if held_back:
        pool.do("close")
    for what, name, size in operations:
        if what == "+":
            pool.allocate(name, size)
        elif what == "-":
            pool.free(name)
        elif what in ("stream-sync", "device-sync"):
            pool.do(what)
            if held_back:
                pool.do("close")
    return pool.reset()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--replay", type=Path, help="operations of recorded runs, by name")
    parser.add_argument("--deadline", type=float, default=25.0)
    options = parser.parse_args()
    begin = time.monotonic()
    cuda.start_context()
    gate = Gate()
    pool = Pool(gate)
    answers: dict[str, Any] = {"crafted": {}, "random": {}, "replay": {}, "failures": []}

    def ask(kind: str, name: str, question: Any) -> None:
        if time.monotonic() - begin > options.deadline:
            return
        try:
            answers[kind][name] = question()
        except Exception as error:  # one failed question must not lose the others
            answers["failures"].append([kind, name, repr(error)])
            gate.open()
            pool.reset()

    for text in crafted():
        ask("crafted", text, lambda text=text: script(pool, text))
    for seed in range(12):
        for held_back in (True, False):
            name = f"{seed} {'held back' if held_back else 'free'}"
            ask("random", name, lambda s=seed, h=held_back: at_random(pool, s, held_back=h))
    if options.replay:
        for case, operations in json.loads(gzip.decompress(options.replay.read_bytes())).items():
            for held_back in (True, False):
                name = f"{case} {'held back' if held_back else 'free'}"
                ask("replay", name, lambda o=operations, h=held_back: replay(pool, o, held_back=h))
    options.out.write_bytes(gzip.compress(json.dumps(answers).encode(), mtime=0))
    print(
        f"{sum(map(len, (answers[k] for k in ('crafted', 'random', 'replay'))))} answers, "
        f"{len(answers['failures'])} failures, {time.monotonic() - begin:.1f} s"
    )
    for failure in answers["failures"]:
        print(*failure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
