"""Which workspace cuBLASLt wants for the matrix products inside 1x1 convolutions, on a real card.

    python ground_truth/cudnn/explore_products.py --out FOLDER [--seconds 60] [--sides 224 256 ...]

cuDNN runs 1x1 convolutions as products of cuBLASLt, with the settings used here. The layers are
those of torchvision's models (`pointwise_layers.json`: channels, filters, height, width, stride)
for pictures of 224 x 224; for other pictures they are scaled.
Writes `cudnn-products.json.gz`: one row per product, with the workspaces of all proposed algorithms
(at most eight, best first) under limits of 4 MiB and 128 MiB, which are cuDNN's own.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import multiprocessing
import os
import sys
import time
from typing import Any, Dict, List, Tuple

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import cudnn_api as api  # noqa: E402
from written import write_answer  # noqa: E402

# Those that people use first: the recording ends when its time is over.
BATCHES = (32, 64, 128, 16, 8, 256, 1, 4, 2, 96, 48, 24, 12, 100, 192, 20, 40, 80, 129, 130)
LIMITS = (4 << 20, 128 << 20)
SINGLE, HALF, BFLOAT16 = 0, 2, 14
FAST_TF32 = 77
# element, result element, transposed a, transposed b, m, n, k, batch
Product = Tuple[int, int, int, int, int, int, int, int]


def products(layer: List[int], n: int) -> List[Product]:
    channels, filters, height, width, stride = layer
    pixels = ((height - 1) // stride + 1) * ((width - 1) // stride + 1)
    found: List[Product] = []
    for element in (SINGLE, HALF, BFLOAT16):
        if stride == 1 and pixels > 1:
            found += [
                (element, element, 0, 0, pixels, filters, channels, n),
                (element, element, 0, 1, pixels, channels, filters, n),
                (element, SINGLE, 1, 0, channels, filters, pixels, n),
            ]
        found += [
            (element, element, 1, 0, filters, n * pixels, channels, 1),
            (element, element, 0, 0, channels, n * pixels, filters, 1),
            (element, element, 0, 1, channels, filters, n * pixels, 1),
        ]
    return found


def scaled(layers: List[List[int]], side: int) -> List[List[int]]:
    """The layers of the same networks for pictures of another side."""
    found = [
        [channels, filters, -(-height * side // 224), -(-width * side // 224), stride]
        for channels, filters, height, width, stride in layers
        if side == 224 or height > 1
    ]
    return [layer for index, layer in enumerate(found) if layer not in found[:index]]


class Asker:
    def __init__(self) -> None:
        self.lib = ctypes.CDLL(None)
        for folder in api.library_folders():
            for name in ("libcublasLt.so.13", "libcublasLt.so.12"):
                path = os.path.join(folder, name)
                if os.path.exists(path):
                    self.lib = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
                    break
        self.handle = ctypes.c_void_p()
        status = self.lib.cublasLtCreate(ctypes.byref(self.handle))
        if status:
            raise RuntimeError(f"cublasLtCreate: {status}")

    def _set(self, kind: str, desc: ctypes.c_void_p, name: int, value: Any) -> None:
        function = getattr(self.lib, f"cublasLt{kind}SetAttribute")
        function(desc, name, ctypes.byref(value), ctypes.c_size_t(ctypes.sizeof(value)))

    def _matrix(
        self, element: int, rows: int, columns: int, batch: int, offset: int
    ) -> ctypes.c_void_p:
        desc = ctypes.c_void_p()
        self.lib.cublasLtMatrixLayoutCreate(
            ctypes.byref(desc),
            element,
            ctypes.c_uint64(rows),
            ctypes.c_uint64(columns),
            ctypes.c_int64(rows),
        )
        self._set("MatrixLayout", desc, 5, ctypes.c_int32(batch))
        self._set("MatrixLayout", desc, 6, ctypes.c_int64(offset))
        return desc

    def ask(self, product: Product) -> List[Any]:
        element, result, ta, tb, m, n, k, batch = product
        lib = self.lib
        operation = ctypes.c_void_p()
        lib.cublasLtMatmulDescCreate(ctypes.byref(operation), FAST_TF32, 0)
        self._set("MatmulDesc", operation, 3, ctypes.c_int32(ta))
        self._set("MatmulDesc", operation, 4, ctypes.c_int32(tb))
        is_batched = batch > 1 or (ta, tb) == (1, 0) and result != element
        # The filter is the same for the whole batch: its matrix has no offset.
        shared = (ta, tb) != (1, 0)
        a = self._matrix(element, *((k, m) if ta else (m, k)), batch, m * k if is_batched else 0)
        b = self._matrix(
            element, *((n, k) if tb else (k, n)), batch, 0 if shared or not is_batched else n * k
        )
        d = self._matrix(result, m, n, batch, m * n if is_batched else 0)
        answer: List[Any] = []
        for limit in LIMITS:
            wishes = ctypes.c_void_p()
            lib.cublasLtMatmulPreferenceCreate(ctypes.byref(wishes))
            self._set("MatmulPreference", wishes, 1, ctypes.c_uint64(limit))
            for alignment in (5, 6, 7, 8):
                self._set("MatmulPreference", wishes, alignment, ctypes.c_uint32(16))
            self._set("MatmulPreference", wishes, 12, ctypes.c_uint64(0xFFFFFF))
            results = (ctypes.c_uint64 * (12 * 8))()
            count = ctypes.c_int()
            status = lib.cublasLtMatmulAlgoGetHeuristic(
                self.handle, operation, a, b, d, d, wishes, 8, results, ctypes.byref(count)
            )
            answer.append(
                -1 - status
                if status or not count.value
                else [int(results[12 * i + 8]) for i in range(count.value)]
            )
            lib.cublasLtMatmulPreferenceDestroy(wishes)
        for matrix in (a, b, d):
            lib.cublasLtMatrixLayoutDestroy(matrix)
        lib.cublasLtMatmulDescDestroy(operation)
        return answer


_worker: Dict[str, Any] = {}


def _start(deadline: float) -> None:
    _worker["asker"], _worker["deadline"] = Asker(), deadline


def _layer(task: Tuple[List[int], int]) -> List[Any]:
    rows = []
    for product in products(*task):
        if time.time() > _worker["deadline"]:
            break
        rows.append([list(product), *_worker["asker"].ask(product)])
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--processes", type=int, default=12)
    parser.add_argument("--sides", type=int, nargs="+", default=[224])
    parser.add_argument("--batches", type=int, nargs="+", default=BATCHES)
    options = parser.parse_args()
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "pointwise_layers.json")) as stream:
        layers = json.load(stream)
    deadline = time.time() + options.seconds
    context = multiprocessing.get_context("spawn")
    with context.Pool(options.processes, _start, (deadline,)) as pool:
        tasks = [
            (layer, batch)
            for side in options.sides
            for batch in options.batches
            for layer in scaled(layers, side)
        ]
        rows = {str(row[0]): row for rows in pool.imap(_layer, tasks, chunksize=8) for row in rows}
    print(f"{len(rows)} products", file=sys.stderr)
    write_answer(sorted(rows.values()), options.out, "cudnn-products.json.gz")
    return 0


if __name__ == "__main__":
    sys.exit(main())
