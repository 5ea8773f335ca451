"""One small training of several ranks, by the name of its strategy. Started by `torchrun`.

    torchrun --nproc-per-node 2 train.py fsdp2

The same file runs on a real card and on virtual ones. Every rank prints one line of JSON with what
its allocator had: nothing else is compared.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import sys
from typing import Any, Callable

import collectives
import data_parallel
import frameworks
import sharded
import split_models
import torch
import torch.distributed as dist

CASES: dict[str, Callable[[], None]] = {
    **data_parallel.CASES,
    **sharded.CASES,
    **split_models.CASES,
    **frameworks.CASES,
    **collectives.CASES,
}

MORE_FIGURES: dict[str, Any] = {}
"""What a program around this one has found beside."""


def digest_of_requests(snapshot: Any) -> str:
    """One for all sizes that were asked for, in their order and with their streams.

    When blocks come back is a matter of timing in a program with several streams; what is asked for
    is not.
    """
    streams: dict[int, int] = {}
    digest = hashlib.sha256()
    for event in itertools.chain(*snapshot["device_traces"]):
        if event["action"] == "alloc":
            stream = streams.setdefault(event["stream"], len(streams))
            digest.update(f"{event['size']} {stream};".encode())
    return digest.hexdigest()[:16]


def main() -> None:
    case = sys.argv[1]
    # With several ranks on one real card, all of them use the first.
    local = 0 if os.environ.get("RANKS_SHARE_CARD") else int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    dist.init_process_group("nccl")
    torch.manual_seed(0)
    history = os.environ.get("RANKS_HISTORY")
    torch.cuda.memory._record_memory_history(
        context="all" if history else None, stacks="python", max_entries=1_000_000
    )
    has_run_out = False
    try:
        CASES[case]()
        torch.cuda.synchronize()
    except torch.OutOfMemoryError:
        has_run_out = True
    statistics = torch.cuda.memory_stats()
    figures = {
        "rank": int(os.environ["RANK"]),
        "allocated": torch.cuda.max_memory_allocated(),
        "reserved": torch.cuda.max_memory_reserved(),
        "allocations": statistics["allocation.all.allocated"],
        "retries": statistics["num_alloc_retries"],
        "has_run_out": has_run_out,
        "requests": digest_of_requests(torch.cuda.memory._snapshot()),
        **MORE_FIGURES,
    }
    # In one piece, so that lines of two ranks do not mix.
    os.write(1, ("figures " + json.dumps(figures) + "\n").encode())
    if history:
        torch.cuda.memory._dump_snapshot(f"{history}/{case}-{figures['rank']}.pickle")
    if has_run_out:
        # Others may wait for this rank in a collective: there is no orderly end.
        os._exit(0)
    if dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
