"""Writes pickles of random values, and beside each what Python's own unpickler makes of it.

python cpython_values.py FOLDER SEED COUNT      N.pickle and N.txt for each value
python cpython_values.py --describe FILE...     FILE.txt for each pickle (also .gz)

The text is one token a line, in the order of a walk: containers with their number of items, those
that were seen before as a reference, so that sharing and cycles are compared too.
"""

from __future__ import annotations

import gzip
import pickle
import random
import struct
import sys
from pathlib import Path
from typing import Any


def describe(root: Any) -> str:
    lines: list[str] = []
    seen: dict[int, int] = {}
    work = [root]
    while work:
        value = work.pop()
        if value is None:
            lines.append("none")
        elif isinstance(value, bool):
            lines.append("true" if value else "false")
        elif isinstance(value, int):
            lines.append(describe_int(value))
        elif isinstance(value, float):
            lines.append("float " + struct.pack(">d", value).hex())
        elif isinstance(value, str):
            lines.append("str " + value.encode("utf-8", "surrogatepass").hex())
        elif isinstance(value, bytes):
            lines.append("bytes " + value.hex())
        elif isinstance(value, bytearray):
            lines.append("bytearray " + value.hex())
        elif isinstance(value, tuple):
            # Which of two equal tuples it is, nobody can tell.
            lines.append(f"tuple {len(value)}")
            work.extend(reversed(value))
        elif isinstance(value, (set, frozenset)):
            name = type(value).__name__
            items = sorted(describe(item) for item in value)
            lines.append(f"{name} {len(items)}")
            lines.extend(item.rstrip("\n") for item in items)
        elif id(value) in seen:
            lines.append(f"again {seen[id(value)]}")
        else:
            seen[id(value)] = len(seen)
            if isinstance(value, list):
                lines.append(f"list {len(value)}")
                work.extend(reversed(value))
            elif isinstance(value, dict):
                lines.append(f"dict {len(value)}")
                for key, item in reversed(list(value.items())):
                    work.extend((item, key))
            else:
                raise TypeError(type(value))
    return "\n".join(lines) + "\n"


def describe_int(value: int) -> str:
    if -(1 << 63) <= value < 1 << 63:
        return f"int {value}"
    length = (value.bit_length() + 8) // 8 if value >= 0 else ((~value).bit_length() + 8) // 8
    return "bigint " + value.to_bytes(length, "little", signed=True).hex()


class RandomValues:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.made: list[Any] = []

    def scalar(self, protocol: int) -> Any:
        choose = self.random
        integer = choose.choice([1, -1]) * choose.getrandbits(
            choose.choice([0, 3, 8, 9, 16, 31, 32, 47, 63, 64, 90, 2200])
        )
        text = "".join(
            choose.choice("ab ü\n\\'\"\udc80語🙂\0")
            for _ in range(choose.choice([0, 1, 5, 40, 300]))
        )
        real = choose.choice(
            [0.0, -0.0, 1.5, float("inf"), float("nan"), choose.uniform(-1e300, 1e300)]
        )
        values: list[Any] = [None, True, False, integer, integer, text, text, real]
        if protocol >= 3:
            values.append(bytes(choose.getrandbits(8) for _ in range(choose.choice([0, 3, 300]))))
        if protocol >= 5:
            values.append(bytearray(b"abc"))
        return choose.choice(values)

    def value(self, protocol: int, depth: int) -> Any:
        choose = self.random
        kind = choose.randrange(9)
        if depth == 0 or kind <= 1:
            return self.scalar(protocol)
        if kind == 2 and self.made:
            return choose.choice(self.made)
        count = choose.choice([0, 1, 2, 3, 4, 7, 20])
        if kind <= 4:
            items: list[Any] = []
            self.made.append(items)
            items.extend(self.value(protocol, depth - 1) for _ in range(count))
            return items
        if kind == 5:
            return tuple(self.value(protocol, depth - 1) for _ in range(min(count, 5)))
        if kind == 6 and protocol >= 4:
            scalars = {choose.getrandbits(20) for _ in range(count)} | {"text", None}
            return frozenset(scalars) if choose.random() < 0.5 else scalars
        table: dict[Any, Any] = {}
        self.made.append(table)
        for _ in range(count):
            key = choose.choice(
                [
                    choose.getrandbits(40),
                    f"key{choose.randrange(50)}",
                    (1, choose.randrange(9)),
                    None,
                ]
            )
            table[key] = self.value(protocol, depth - 1)
        return table


def main() -> None:
    if sys.argv[1] == "--describe":
        for name in sys.argv[2:]:
            content = Path(name).read_bytes()
            if name.endswith(".gz"):
                content = gzip.decompress(content)
            Path(name + ".txt").write_text(describe(pickle.loads(content)))
        return
    folder, seed, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    for number in range(count):
        protocol = number % 6
        values = RandomValues(seed + number)
        value = values.value(protocol, 5)
        if number % 7 == 0:
            # Longer than a batch of a thousand.
            value = [value, list(range(2500)), {key: [key] for key in range(1001)}]
        content = pickle.dumps(value, protocol)
        (folder / f"{number}.pickle").write_bytes(content)
        (folder / f"{number}.txt").write_text(describe(pickle.loads(content)))


if __name__ == "__main__":
    main()
