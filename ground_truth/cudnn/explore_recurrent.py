"""A second look at recurrent networks and at attention with few queries, on a real card.

    python ground_truth/cudnn/explore_recurrent.py --out FOLDER

The first look (`explore.py`) gave every size but two: how many time steps the backward pass works
on at once (it depends on the cell, the number of layers and the batch), and what attention takes
when there are so few queries that the keys are split. Writes `cudnn-recurrent.json.gz`.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any, Dict, List

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import attention  # noqa: E402
import cudnn_api as api  # noqa: E402
import normalisation  # noqa: E402
import recurrent  # noqa: E402
from explore import _make_handle  # noqa: E402
from written import write_answer  # noqa: E402


def chunk_points() -> List[recurrent.Point]:
    """Wide inputs make the backward pass the larger one, so that its size can be seen."""
    batches = (
        1,
        2,
        3,
        4,
        5,
        6,
        7,
        8,
        9,
        10,
        12,
        14,
        16,
        17,
        18,
        20,
        24,
        28,
        32,
        33,
        40,
        48,
        64,
        80,
        96,
        97,
        100,
        112,
        128,
        129,
        160,
        192,
        256,
        257,
        384,
        512,
    )
    points = []
    for mode in (recurrent.LSTM, recurrent.GRU, recurrent.TANH, recurrent.RELU):
        for layers in (1, 2, 3, 4, 5, 6, 8):
            for batch in batches:
                for hidden, seq, bidirectional in (
                    (64, 400, 0),
                    (1024, 400, 0),
                    (64, 400, 1),
                    (256, 48, 0),
                    (1024, 48, 1),
                ):
                    points.append(
                        {
                            **recurrent.BASE,
                            "mode": mode,
                            "layers": layers,
                            "batch": batch,
                            "hidden": hidden,
                            "projection": hidden,
                            "seq": seq,
                            "input": 4096,
                            "bidirectional": bidirectional,
                            "math": 3,
                        }
                    )
    return points


def variant_points() -> List[recurrent.Point]:
    """Dropout, packing, projections and the other algorithms, each away from the base point."""
    points = []
    for mode in (recurrent.LSTM, recurrent.GRU, recurrent.TANH, recurrent.RELU):
        for dtype, math in ((api.FLOAT, 3), (api.HALF, 1), (api.BFLOAT16, 0)):
            for bidirectional in (0, 1):
                for layers in (1, 2, 3, 4):
                    for batch, seq, width, hidden in (
                        (16, 32, 256, 512),
                        (33, 50, 300, 100),
                        (64, 128, 512, 1024),
                        (8, 20, 1024, 128),
                        (128, 300, 64, 64),
                        (5, 7, 33, 31),
                        (32, 35, 650, 650),
                        (20, 35, 200, 200),
                        (64, 100, 300, 256),
                    ):
                        base = {
                            **recurrent.BASE,
                            "mode": mode,
                            "dtype": dtype,
                            "math": math,
                            "bidirectional": bidirectional,
                            "layers": layers,
                            "batch": batch,
                            "seq": seq,
                            "input": width,
                            "hidden": hidden,
                            "projection": hidden,
                        }
                        algorithms = {
                            0,
                            recurrent.torch_algorithm(base, True),
                            recurrent.torch_algorithm(base, False),
                        }
                        for algo in sorted(algorithms):
                            points.append({**base, "algo": algo})
                            points.append({**base, "algo": algo, "dropout": 0.3})
                        for lengths in ("full", "falling", "steep"):
                            for dropout in (0.0, 0.3):
                                points.append(
                                    {**base, "packed": 1, "lengths": lengths, "dropout": dropout}
                                )
                        if mode == recurrent.LSTM:
                            points.append({**base, "projection": max(1, hidden // 2)})
                            points.append({**base, "projection": max(1, hidden // 3), "packed": 1})
    return points


def persistent_points() -> List[recurrent.Point]:
    points = []
    for mode in (recurrent.LSTM, recurrent.TANH, recurrent.RELU):
        for hidden in (256, 384, 512, 640, 768, 896, 1024):
            for batch in (8, 16, 24, 32, 64, 80, 96, 128):
                for width, seq in ((128, 10), (512, 32), (1024, 100), (2048, 300)):
                    point = {
                        **recurrent.BASE,
                        "mode": mode,
                        "dtype": api.HALF,
                        "math": 1,
                        "layers": 1,
                        "hidden": hidden,
                        "projection": hidden,
                        "batch": batch,
                        "input": width,
                        "seq": seq,
                    }
                    if recurrent.torch_algorithm(point, True) == recurrent.PERSIST_STATIC:
                        points.append({**point, "algo": recurrent.PERSIST_STATIC})
    return points


def few_queries() -> List[attention.Point]:
    points = []
    for q in (1, 2, 16):
        for kv in (64, 128, 256, 512, 1000, 1024, 4096):
            for batch, heads, kv_heads, dim in ((4, 8, 8, 64), (1, 32, 8, 128), (1, 12, 12, 64)):
                points.append(
                    {
                        **attention.BASE,
                        "q": q,
                        "kv": kv,
                        "batch": batch,
                        "heads": heads,
                        "kv_heads": kv_heads,
                        "dim": dim,
                        "v_dim": dim,
                        "grad": 0,
                    }
                )
    return points


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    import torch

    lib = api.load()
    torch.cuda.init()
    handle = _make_handle(lib)
    states_bytes = normalisation.dropout_states(lib, handle)
    states = torch.zeros(states_bytes, dtype=torch.uint8, device="cuda")
    asker = recurrent.Recurrent(lib, handle, states.data_ptr(), states_bytes)
    answer: Dict[str, Any] = {
        "cudnn": lib.cudnnGetVersion(),
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name(0),
    }
    for name, points in (
        ("chunks", chunk_points()),
        ("variants", variant_points()),
        ("persistent", persistent_points()),
    ):
        answer[name] = [[point, asker.ask(point, with_offsets=False)] for point in points]
        print(name, len(answer[name]), file=sys.stderr, flush=True)
    torch.ones(4, device="cuda", requires_grad=True).sum().backward()
    answer["few_queries"] = [{"point": point, **attention.ask(point)} for point in few_queries()]
    write_answer(answer, options.out, "cudnn-recurrent.json.gz")
    return 0


if __name__ == "__main__":
    sys.exit(main())
