"""Compare the virtual card's cuDNN with what the real card answered.

    ghostgpu run --gpu h200 ground_truth/cudnn/compare.py [--every N] [--show N] [FILE]

Runs inside a rehearsal: every question recorded in FILE (made on a real card by `explore.py` or
`explore_recurrent.py`) is put to the stand-in's own functions. Prints one line per family, and the
first differences; exits with 3 if there are more of them than `--allowed`.
"""

from __future__ import annotations

import argparse
import ctypes
import gzip
import json
import os
import sys
from typing import Any, Dict, List, Tuple

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import attention  # noqa: E402
import convolutions  # noqa: E402
import cudnn_api as api  # noqa: E402
import normalisation  # noqa: E402
import recurrent  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))


class Family:
    """Counts equal and different answers of one kind."""

    def __init__(self, name: str, show: int) -> None:
        self.name, self.show = name, show
        self.equal = 0
        self.different: List[str] = []

    def check(self, what: Any, real: Any, virtual: Any) -> None:
        if real == virtual:
            self.equal += 1
        else:
            self.different.append(f"{what}: real {real}, virtual {virtual}")

    def report(self) -> None:
        total = self.equal + len(self.different)
        print(f"{self.name}: {self.equal} of {total} equal")
        for line in self.different[: self.show]:
            print(f"    {line}")


def configurations(answer: Dict[str, Any]) -> List[Tuple[Any, Any]]:
    return [(row["engine"], row["knobs"]) for row in answer["configs"]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", default=os.path.join(HERE, "h200-cudnn-9.19.json.gz"))
    parser.add_argument("--every", type=int, default=1, help="check every N-th convolution only")
    parser.add_argument("--every-attention", type=int, default=1, help="likewise, of attention")
    parser.add_argument("--show", type=int, default=5, help="differences to print per family")
    parser.add_argument("--allowed", type=int, default=0, help="differences that are no failure")
    options = parser.parse_args()
    with gzip.open(options.file, "rt") as stream:
        recorded = json.load(stream)
    # The stand-in asks the installed cuDNN, which has to be in the process as with PyTorch.
    real = [os.path.join(folder, "libcudnn.so.9") for folder in api.library_folders()]
    keep = [ctypes.CDLL(path) for path in real[:1] if os.path.exists(path)]
    for path in real:
        if not keep and os.path.exists(path):
            keep.append(ctypes.CDLL(path))
    lib = ctypes.CDLL(None)
    lib.cudnnGetVersion.restype = ctypes.c_size_t
    handle = ctypes.c_void_p()
    if lib.cudnnCreate(ctypes.byref(handle)):
        print("no virtual card: run this under ghostgpu", file=sys.stderr)
        return 2
    families = [
        check_convolutions(lib, handle, recorded, options),
        *check_recurrent(lib, handle, recorded, options),
        *check_others(lib, handle, recorded, options),
        check_attention(recorded, options),
    ]
    for family in families:
        family.report()
    return 3 if sum(len(family.different) for family in families) > options.allowed else 0


def check_convolutions(
    lib: ctypes.CDLL, handle: ctypes.c_void_p, recorded: Dict[str, Any], options: argparse.Namespace
) -> Family:
    backend = api.Backend(lib, handle)
    family = Family("convolution workspaces", options.show)
    for row in recorded.get("convolutions", [])[:: options.every]:
        answer = convolutions.ask(backend, row["problem"], None, len(row["handle"]["configs"]))
        if configurations(row["handle"]) != configurations(answer):
            family.check(row["problem"], configurations(row["handle"]), configurations(answer))
            continue
        for real, virtual in zip(row["handle"]["configs"], answer["configs"]):
            what = f"{row['problem']} engine {real['engine']} {real['knobs']}"
            family.check(
                what,
                (real["status"], real.get("workspace"), real["numerical"]),
                (virtual["status"], virtual.get("workspace"), virtual["numerical"]),
            )
    return family


def check_recurrent(
    lib: ctypes.CDLL, handle: ctypes.c_void_p, recorded: Dict[str, Any], options: argparse.Namespace
) -> List[Family]:
    asker = recurrent.Recurrent(lib, handle, 0x1000, recorded.get("dropout_states", 0))
    names = ("weight", "inference", "training", "offsets")
    families = {name: Family(f"recurrent networks, {name}", options.show) for name in names}
    lists = [recorded.get(name, []) for name in ("recurrent", "chunks", "variants", "persistent")]
    for point, real in (pair for rows in lists for pair in rows):
        virtual = asker.ask(point, with_offsets="offsets" in real)
        for name in names:
            if name in real:
                families[name].check(point, real[name], virtual.get(name))
    return list(families.values())


def check_attention(recorded: Dict[str, Any], options: argparse.Namespace) -> Family:
    """What PyTorch allocates around cuDNN's attention, in its own order."""
    family = Family("attention, allocations", options.show)
    rows = recorded.get("attention", []) + recorded.get("few_queries", [])
    for row in rows[:: options.every_attention]:
        virtual = attention.ask(row["point"])
        for name in ("forward_second", "backward_second"):
            if name in row:
                family.check(f"{row['point']} {name}", row[name], virtual.get(name, virtual))
    return family


def check_others(
    lib: ctypes.CDLL, handle: ctypes.c_void_p, recorded: Dict[str, Any], options: argparse.Namespace
) -> List[Family]:
    dropout = Family("dropout states", options.show)
    if "dropout_states" in recorded:
        dropout.check("", recorded["dropout_states"], normalisation.dropout_states(lib, handle))
    norms, losses = Family("batch norm", options.show), Family("CTC loss", options.show)
    if "batch_norm" in recorded:
        for real, virtual in zip(recorded["batch_norm"], normalisation.batch_norms(lib, handle)):
            sizes = ("forward", "backward", "reserve")
            if not any(real["status"]):
                norms.check(
                    f"{real['dims']} {real['layout']} type {real['dtype']} mode {real['mode']}",
                    [real[n] for n in sizes],
                    [virtual[n] for n in sizes],
                )
    if "ctc" in recorded:
        for real, virtual in zip(recorded["ctc"], normalisation.ctc_losses(lib, handle)):
            losses.check(real, real["sizes"], virtual["sizes"])
    return [dropout, norms, losses]


if __name__ == "__main__":
    sys.exit(main())
