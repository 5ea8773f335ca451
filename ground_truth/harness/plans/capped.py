"""Runs a script on a real card with little memory, and writes down what it came to.

    python capped.py LIMIT LOCK DEADLINE ANSWER SCRIPT [ARGUMENTS]...

`LIMIT` is what PyTorch may reserve, in bytes, or 0. Where `LOCK` is not `-`, the process waits for
that file before it first uses the card, so that it has the card to itself while others import
their libraries and build their models; it gives up if that is later than `DEADLINE`, in seconds
since the epoch. Tricks come from the environment, as `ghostgpu launch` puts them there.
"""

from __future__ import annotations

import fcntl
import json
import os
import runpy
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import torch

limit, lock, deadline, answer, script = sys.argv[1:6]
sys.argv = sys.argv[5:]
sys.path[0] = str(Path(script).resolve().parent)
usual_start = torch.cuda._lazy_init
#: The file that says whose the card is, open while it is ours.
held: list[int] = []


class NoTimeLeft(Exception):
    pass


def start_alone_and_capped() -> None:
    """CUDA's first use in this process: wait for the card, and limit the allocator."""
    torch.cuda._lazy_init = usual_start
    if lock != "-":
        held.append(os.open(lock, os.O_RDWR | os.O_CREAT))
        fcntl.flock(held[0], fcntl.LOCK_EX)
    if time.time() > float(deadline):
        raise NoTimeLeft
    usual_start()
    if int(limit):
        total = torch.cuda.get_device_properties(0).total_memory
        # Half a byte more, since PyTorch rounds the product down.
        torch.cuda.set_per_process_memory_fraction((int(limit) + 0.5) / total)


def outcome() -> dict[str, Any]:
    try:
        runpy.run_path(script, run_name="__main__")
    except NoTimeLeft:
        return {"outcome": "no-time"}
    except torch.OutOfMemoryError as error:
        return {"outcome": "out-of-memory", "text": str(error)[:400]}
    except SystemExit as ended:
        if ended.code:
            return {"outcome": "failed", "text": str(ended.code)[:400]}
    except Exception as error:
        # cuDNN's own words for a workspace that it could not get.
        if "unable to find an engine" in str(error) or "CUDNN_STATUS_ALLOC_FAILED" in str(error):
            return {"outcome": "out-of-memory", "text": str(error)[:400]}
        return {"outcome": "failed", "text": traceback.format_exc()[-1200:]}
    return {"outcome": "ended"}


torch.cuda._lazy_init = start_alone_and_capped
result = outcome()
if result["outcome"] != "no-time" and torch.cuda.is_initialized():
    statistics = torch.cuda.memory_stats()
    free, total = torch.cuda.mem_get_info()
    result["allocated"] = statistics.get("allocated_bytes.all.peak", 0)
    result["reserved"] = statistics.get("reserved_bytes.all.peak", 0)
    result["retries"] = statistics.get("num_alloc_retries", 0)
    if lock != "-":
        result["outside"] = total - free - statistics.get("reserved_bytes.all.current", 0)
for file in held:
    # The next one need not wait until Python has cleared up.
    os.close(file)
Path(answer).write_text(json.dumps(result))
