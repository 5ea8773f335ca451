"""Asks cuFFT how large the work areas of plans are, over a spread of sizes.

    ghostgpu calibrate -o transforms.tsv -- python ground_truth/tables/transforms.py [--seconds 40]

Data is packed, as in most of PyTorch's calls. Nothing is transformed: only plans are made.
"""

from __future__ import annotations

import ctypes
import itertools
import sys
from typing import Iterator

from asking import Asker, place, seconds_argument

# From, to and computed in, as cudaDataType: between complex, real to complex, complex to real.
SINGLE = ((4, 4, 4), (0, 4, 4), (4, 0, 4))
DOUBLE = ((5, 5, 5), (1, 5, 5), (5, 1, 5))
HALF = ((6, 6, 6), (2, 6, 6), (6, 2, 6))
LENGTHS = (
    *(256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288, 1048576),
    *(400, 200, 480, 320, 160, 800, 640, 960, 1200, 1920, 2400, 16000, 22050, 24000, 44100, 48000),
    *(100, 1000, 10000, 100000, 1000000, 300, 500, 600, 1500, 2000, 3000, 5000, 6000, 20000),
    *range(1, 129),
    *(225, 243, 343, 384, 441, 625, 729, 768, 875, 1331, 1536, 1728, 2187, 2197, 2401, 3072, 3125),
    *(4913, 6144, 6561, 6859, 7776, 9216, 12288, 14641, 15625, 16807, 19683, 28561, 46656, 59049),
    *(65537, 78125, 117649, 196608, 390625, 786432, 2097152, 4194304, 8388608, 16777216),
    *(131, 137, 139, 149, 151, 157, 163, 167, 173, 179, 181, 191, 193, 197, 199, 211, 223, 227),
    *(257, 263, 269, 271, 277, 281, 283, 293, 307, 311, 313, 331, 337, 401, 503, 509, 521, 601),
    *(1009, 1021, 1031, 2003, 2039, 4093, 4099, 5003, 8191, 8209, 10007, 16381, 32771, 65521),
    *(130, 132, 136, 140, 144, 150, 154, 156, 162, 168, 169, 175, 176, 180, 187, 189, 196, 208),
    *(210, 216, 221, 224, 231, 240, 250, 252, 260, 264, 270, 273, 280, 286, 288, 289, 312, 323),
    *(334, 358, 382, 394, 422, 502, 514, 526, 1018, 1042, 1111, 1234, 2021, 2345, 3333, 4321, 9999),
    *(12345, 16001, 22051, 44101, 48001, 54321, 99999, 100003, 123456),
)
SIDES = (16, 28, 32, 64, 100, 127, 128, 200, 224, 240, 256, 320, 480, 512, 640, 1000, 1024, 2048)
CUBES = (8, 16, 20, 32, 50, 64, 97, 100, 128, 256)
Shape = tuple[int, ...]


def wanted() -> Iterator[tuple[Shape, int, tuple[int, int, int]]]:
    """What to ask, the most useful first: the clock may stop it anywhere."""
    for length, kind, batch in itertools.product(LENGTHS[:40], SINGLE, (1, 8, 64)):
        yield (length,), batch, kind
    for side, kind, batch in itertools.product(SIDES, SINGLE, (1, 8, 64)):
        yield (side, side), batch, kind
    for kinds, batches in ((SINGLE, (1, 64)), (DOUBLE, (1, 64)), (SINGLE, (7, 1000))):
        for length, kind, batch in itertools.product(LENGTHS, kinds, batches):
            yield (length,), batch, kind
    for kind, rows, columns in itertools.product(SINGLE, SIDES, SIDES):
        if rows != columns:
            yield (rows, columns), 8, kind
    for kind, side, batch in itertools.product(SINGLE, CUBES, (1, 4)):
        yield (side, side, side), batch, kind
    for kind, shape in itertools.product(SINGLE, itertools.product((16, 50, 64, 97), repeat=3)):
        yield shape, 2, kind
    for kind, side, batch in itertools.product(DOUBLE, SIDES, (1, 8)):
        yield (side, side), batch, kind
    for kind, power, batch in itertools.product(HALF, range(1, 16), (1, 64)):
        yield (1 << power,), batch, kind
    for kind, power in itertools.product(HALF, range(3, 11)):
        yield (1 << power, 1 << power), 8, kind


def main() -> int:
    seconds = seconds_argument(__doc__)
    asker = Asker("libcufft.so.12", "cufftCreate", seconds)
    create, destroy = asker.helper("cufftCreate"), asker.helper("cufftDestroy")
    set_automatic = asker.helper("cufftSetAutoAllocation")
    one = ctypes.c_int64(1)
    for shape, batch, (source, target, execution) in wanted():
        if asker.is_over():
            break
        plan = ctypes.c_int()
        create(ctypes.byref(plan))
        set_automatic(plan, 0)
        sizes = (ctypes.c_int64 * len(shape))(*shape)
        asker.ask(
            "cufftXtMakePlanMany",
            *(plan, len(shape), sizes, None, one, one, source, None, one, one, target),
            *(ctypes.c_int64(batch), place(), execution),
        )
        destroy(plan)
    asker.report("plans")
    return 0


if __name__ == "__main__":
    sys.exit(main())
