"""Makes the table of matrix products that the cuDNN oracle's companions carry, from a recording.

    python ground_truth/cudnn/products_table.py

Reads `ground_truth/h200/cudnn_products.json.gz`, which `explore_products.py` recorded, and writes
`crates/oracle-companions/src/h200_products.tsv`. cuDNN makes room for the largest of the algorithms
that cuBLASLt proposes, rounded up to 16 bytes: so say all 780 products that were also recorded
through cuDNN itself. One line holds the products that differ in one size only, the batch in the
end, and sizes in sequence with the same answer are one range.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import Any, Dict, List, Tuple

ROOT = Path(__file__).resolve().parents[2]
RECORDING = ROOT / "ground_truth/h200/cudnn_products.json.gz"
TABLE = ROOT / "crates/oracle-companions/src/h200_products.tsv"
ELEMENTS = {0: "f32", 2: "f16", 14: "bf16"}
HEAD = """\
# Workspaces that cuDNN wants on an H200 for the products of cuBLASLt 13.1 inside 1x1 convolutions.
# Written by ground_truth/cudnn/products_table.py. `*` is the size that differs; then, for ranges of
# it, the bytes with at most 4 MiB and with at most 128 MiB.
# type\tresult\ttransposed\tm\tn\tk\tbatch\tranges
"""
Answer = Tuple[int, int]


def largest(workspaces: Any) -> int:
    """What cuDNN makes of a list of algorithms; nothing where there is none."""
    return 0 if isinstance(workspaces, int) else max(-(-each // 16) * 16 for each in workspaces)


def varying(product: List[int]) -> int:
    """Which of m, n, k and the batch grows with the batch of the convolution."""
    element, result, ta, tb, *_, batch = product
    if batch > 1 or (ta, tb) == (1, 0) and result != element:
        return 3
    return 2 if (ta, tb) == (0, 1) else 1


def ranges(answers: Dict[int, Answer]) -> str:
    found: List[Tuple[int, int, Answer]] = []
    for size, answer in sorted(answers.items()):
        if found and found[-1][2] == answer:
            found[-1] = (found[-1][0], size, answer)
        else:
            found.append((size, size, answer))
    return " ".join(
        f"{first}-{last}:{small},{large}" if first != last else f"{first}:{small},{large}"
        for first, last, (small, large) in found
    )


def main() -> None:
    with gzip.open(RECORDING, "rt") as stream:
        rows = json.load(stream)
    series: Dict[Tuple[str, ...], Dict[int, Answer]] = defaultdict(dict)
    for product, small, large in rows:
        element, result, ta, tb, *sizes = product
        place = varying(product)
        named = [str(size) for size in sizes]
        named[place] = "*"
        key = (ELEMENTS[element], ELEMENTS[result], "NT"[ta] + "NT"[tb], *named)
        series[key][sizes[place]] = (largest(small), largest(large))
    lines = ["\t".join((*key, ranges(answers))) for key, answers in sorted(series.items())]
    TABLE.write_text(HEAD + "\n".join(lines) + "\n")
    print(f"{len(rows)} products in {len(lines)} lines, {TABLE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
