"""Records the allocations of several hundred single operations, to compare cards one by one.

    python ground_truth/harness/micro_ops.py --out micro_ops.json.gz [--only sdpa]

Each operation runs three times: `cold` after the cache and the cuBLAS workspaces were given back,
`warm` right after it, and `loaded` once more, to tell first-use allocations from those of every
call. An event is `[action, bytes]`, in the order of the allocator's own history.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, TextIO

sys.path.insert(0, str(Path(__file__).resolve().parent))

import torch  # noqa: E402

from micro import OPERATIONS, Operation  # noqa: E402
from micro.operation import Inputs  # noqa: E402


def run_once(operation: Operation, inputs: tuple[Any, ...]) -> None:
    output = operation.call(*inputs)
    if operation.backward:
        if not isinstance(output, torch.Tensor):
            output = output[0]
        output.float().sum().backward()
        # Gradients are part of the operation and must be freed before the next iteration.
        for value in inputs:
            if isinstance(value, torch.Tensor):
                value.grad = None
            elif isinstance(value, torch.nn.Module):
                value.zero_grad(set_to_none=True)
    del output


def prepare(operation: Operation, maker: Inputs) -> tuple[Any, ...]:
    inputs = operation.inputs(maker)
    if operation.backward:
        for value in inputs:
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                value.requires_grad_()
    return inputs


def recorded(operation: Operation, inputs: tuple[Any, ...]) -> dict[str, Any]:
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    torch.cuda.memory._record_memory_history(
        "all", context=None, stacks="python", max_entries=100_000, clear_history=True
    )
    failure = None
    try:
        run_once(operation, inputs)
        torch.cuda.synchronize()
    except Exception as error:  # noqa: BLE001
        failure = f"{type(error).__name__}: {str(error).splitlines()[0][:300]}"
    trace = torch.cuda.memory._snapshot()["device_traces"][0]
    torch.cuda.memory._record_memory_history(None)
    events = [[row["action"], row["size"]] for row in trace if row["action"] != "snapshot"]
    answer: dict[str, Any] = {
        "peak_bytes": torch.cuda.max_memory_allocated() - before,
        "events": events,
    }
    if failure:
        answer["failed"] = failure
    return answer


def measure(operation: Operation) -> dict[str, Any]:
    gc.collect()
    inputs = prepare(operation, Inputs("cuda"))
    torch.cuda.synchronize()
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.empty_cache()
    answer = {
        "is_data_dependent": operation.is_data_dependent,
        "cold": recorded(operation, inputs),
        "warm": recorded(operation, inputs),
    }
    answer["loaded"] = recorded(operation, inputs)
    if answer["loaded"] == answer["warm"]:
        answer["loaded"] = "as warm"
    return answer


def measure_all(names: list[str], deadline: float) -> dict[str, Any]:
    """Measures the operations one after another in a child; another takes over if it dies.

    One process for all, because first-use allocations belong to the first user only. CUDA is used
    in the children alone, so that each of them may.
    """
    results: dict[str, Any] = {}
    while len(results) < len(names):
        left = names[len(results) :]
        if time.monotonic() > deadline:
            return {**results, **{name: {"failed": "not run: out of time"} for name in left}}
        with tempfile.TemporaryFile("w+") as lines:
            child = os.fork()
            if child == 0:
                _measure_until(left, deadline, lines)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            lines.seek(0)
            done = [json.loads(line) for line in lines if line.endswith("\n")]
        results.update(zip(left, done))
        if status != 0 and len(done) < len(left):
            results[left[len(done)]] = {"failed": f"the process died: {status}"}
            print(f"died ({status}): {left[len(done)]}", flush=True)
    return results


def _measure_until(names: list[str], deadline: float, lines: TextIO) -> None:
    """Writes one line per operation and ends the process."""
    for name in names:
        if time.monotonic() > deadline:
            break
        try:
            answer = measure(OPERATIONS[name])
        except Exception as error:  # noqa: BLE001
            answer = {"failed": f"{type(error).__name__}: {error}"}
        lines.write(json.dumps(answer) + "\n")
        lines.flush()
    os._exit(0)


def try_on_cpu(operation: Operation) -> None:
    """Runs the operation on small inputs without a card: finds mistakes in the table."""
    run_once(operation, prepare(operation, Inputs("cpu", tiny=True)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--cpu", action="store_true", help="only check that each operation runs")
    parser.add_argument("--deadline", type=float, default=90.0)
    options = parser.parse_args()
    chosen = {name: op for name, op in OPERATIONS.items() if options.only in name}
    if options.cpu:
        return check_table(chosen)
    started = time.monotonic()
    results = measure_all(list(chosen), started + options.deadline)
    answer = {
        "command": ["python", "ground_truth/harness/micro_ops.py", *sys.argv[1:]],
        "torch": torch.__version__,
        "cudnn": torch.backends.cudnn.version(),
        "operations": results,
    }
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(options.out, "wt") as file:
            json.dump(answer, file, separators=(",", ":"))
    failed = [n for n, r in results.items() if "failed" in r or "failed" in r.get("cold", {})]
    print(f"{len(results)} operations, {len(failed)} failed, {time.monotonic() - started:.1f} s")
    for name in failed:
        print("  failed:", name, results[name].get("failed") or results[name]["cold"]["failed"])
    return 0


def check_table(chosen: dict[str, Operation]) -> int:
    failures = 0
    for name, operation in chosen.items():
        if operation.needs_card:
            continue
        try:
            try_on_cpu(operation)
        except Exception as error:  # noqa: BLE001
            failures += 1
            print(f"{name}: {type(error).__name__}: {str(error).splitlines()[0]}")
    print(f"{len(chosen)} operations, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
