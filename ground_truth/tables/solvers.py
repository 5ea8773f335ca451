"""Asks cuSOLVER how large the workspaces of factorisations are, over a spread of sizes.

ghostgpu calibrate -o solvers.tsv -- python ground_truth/tables/solvers.py [--seconds 40]
"""

from __future__ import annotations

import ctypes
import sys

from asking import Asker, long, pairs, place, seconds_argument

# S, D, C, Z with their cudaDataType and the real type behind each.
ELEMENTS = (("S", 0, 0), ("D", 1, 1), ("C", 4, 0), ("Z", 5, 1))
SIZES = (
    *range(1, 18),
    *(20, 24, 31, 32, 33, 48, 63, 64, 65, 96, 100, 127, 128, 129, 160, 192, 200, 255, 256, 257),
    *(300, 320, 384, 400, 448, 500, 511, 512, 513, 600, 640, 700, 768, 800, 896, 1000, 1023, 1024),
    *(1025, 1100, 1280, 1500, 1536, 1792, 2000, 2047, 2048, 2049, 2500, 3000, 3072, 4000, 4096),
    *(5000, 6000, 8000, 8192, 10000, 12000, 16384),
)
SIDES = (1, 3, 8, 16, 32, 33, 64, 100, 128, 200, 256, 300, 512, 768, 1000, 1024, 2048, 3072, 4096)
SMALL = (1, 2, 3, 4, 8, 12, 16, 24, 31, 32)
BATCHES = (1, 2, 4, 16, 64, 100, 256, 1000)
TRIANGLES = (0, 1)
VECTORS = (0, 1)


def rectangles() -> list[tuple[int, int]]:
    squares = [(size, size) for size in SIZES]
    return squares + [pair for pair in pairs(SIDES) if pair[0] != pair[1]]


def settings(a: Asker, kind: str) -> ctypes.c_void_p:
    """An object of cuSOLVER's with its default settings."""
    made = ctypes.c_void_p()
    a.helper(f"cusolverDnCreate{kind}")(ctypes.byref(made))
    return made


def factorisations(a: Asker) -> None:
    h, data, plain = a.handle, a.data, settings(a, "Params")
    for letter, kind, _ in ELEMENTS:
        for m, n in rectangles():
            for name in ("getrf", "geqrf"):
                a.ask(f"cusolverDn{letter}{name}_bufferSize", h, m, n, data, m, place())
            a.ask(
                "cusolverDnXgeqrf_bufferSize",
                *(h, plain, long(m), long(n), kind, data, long(m), kind, data, kind),
                *(place(), place()),
            )
        for n in SIZES:
            for triangle in TRIANGLES:
                name = f"cusolverDn{letter}potrf_bufferSize"
                a.ask(name, h, triangle, n, data, n, place())
                a.ask(
                    "cusolverDnXpotrf_bufferSize",
                    *(h, plain, triangle, long(n), kind, data, long(n), kind, place(), place()),
                )
            a.ask(f"cusolverDn{letter}sytrf_bufferSize", h, n, data, n, place())


def orthogonal(a: Asker) -> None:
    h, data = a.handle, a.data
    for letter, _, _ in ELEMENTS:
        form, apply = ("orgqr", "ormqr") if letter in "SD" else ("ungqr", "unmqr")
        transposed = 1 if letter in "SD" else 2
        for m, n in rectangles():
            k = min(m, n)
            # The first columns, or all of them.
            for columns in {k, m}:
                name = f"cusolverDn{letter}{form}_bufferSize"
                a.ask(name, h, m, columns, k, data, m, data, place())
            for right_sides in (1, 8, 64, 512):
                name = f"cusolverDn{letter}{apply}_bufferSize"
                for transpose in (0, transposed):
                    a.ask(name, h, 0, transpose, m, right_sides, k, data, m, data, data, m, place())
            if a.is_over():
                return


def singular_values(a: Asker) -> None:
    h, data, plain = a.handle, a.data, settings(a, "GesvdjInfo")
    for letter, _, _ in ELEMENTS:
        for m, n in rectangles():
            if m >= n:
                a.ask(f"cusolverDn{letter}gesvd_bufferSize", h, m, n, place())
            # Left vectors are m x m, or m x min(m, n) when economic; without vectors as well.
            for vectors, economic in ((0, 0), (0, 1), (1, 0), (1, 1)):
                a.ask(
                    f"cusolverDn{letter}gesvdj_bufferSize",
                    *(h, vectors, economic, m, n, data, m, data, data, m, data, n, place(), plain),
                )
            if m >= n and n <= 1024:
                for batch in (1, 2, 8, 64):
                    a.ask(
                        f"cusolverDn{letter}gesvdaStridedBatched_bufferSize",
                        *(h, 1, n, m, n, data, m, long(m * n), data, long(n)),
                        *(data, m, long(m * n), data, n, long(n * n), place(), batch),
                    )
            if a.is_over():
                return


def jacobi_batches(a: Asker) -> None:
    h, data = a.handle, a.data
    singular, symmetric = settings(a, "GesvdjInfo"), settings(a, "SyevjInfo")
    for letter, _, _ in ELEMENTS:
        eigen = "syevj" if letter in "SD" else "heevj"
        for m, n in pairs(SMALL):
            for vectors in VECTORS:
                for batch in BATCHES:
                    a.ask(
                        f"cusolverDn{letter}gesvdjBatched_bufferSize",
                        *(h, vectors, m, n, data, m, data, data, m, data, n, place()),
                        *(singular, batch),
                    )
        for n in (*SMALL, 33, 48, 64, 100, 128, 256, 512, 1024, 2048):
            for vectors in VECTORS:
                for triangle in TRIANGLES:
                    name = f"cusolverDn{letter}{eigen}"
                    arguments = (h, vectors, triangle, n, data, n, data, place(), symmetric)
                    a.ask(f"{name}_bufferSize", *arguments)
                    for batch in BATCHES:
                        a.ask(f"{name}Batched_bufferSize", *arguments, batch)


def eigenvalues(a: Asker) -> None:
    h, data, plain = a.handle, a.data, settings(a, "Params")
    for letter, kind, real in ELEMENTS:
        name = "syevd" if letter in "SD" else "heevd"
        for n in SIZES:
            for vectors in VECTORS:
                for triangle in TRIANGLES:
                    a.ask(
                        f"cusolverDn{letter}{name}_bufferSize",
                        *(h, vectors, triangle, n, data, n, data, place()),
                    )
                    common = (h, plain, vectors, triangle, long(n), kind, data, long(n))
                    tail = (real, data, kind, place(), place())
                    a.ask("cusolverDnXsyevd_bufferSize", *common, *tail)
                    if triangle == 0:
                        for batch in (2, 16, 64, 1000):
                            a.ask("cusolverDnXsyevBatched_bufferSize", *common, *tail, long(batch))
            if a.is_over():
                return


def main() -> int:
    seconds = seconds_argument(__doc__)
    asker = Asker("libcusolver.so.12", "cusolverDnCreate", seconds)
    for part in (factorisations, eigenvalues, orthogonal, jacobi_batches, singular_values):
        part(asker)
        asker.report(part.__name__)
    return 0


if __name__ == "__main__":
    sys.exit(main())
