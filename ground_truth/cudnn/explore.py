"""Ask cuDNN on a real card for every size that a training run depends on, and write them down.

    python ground_truth/cudnn/explore.py --out FOLDER [--seconds 170] [--processes 12]

Without a card only the deviceless half of the convolutions is asked (`--deviceless`). The result
is one file, `cudnn-explore.json.gz`: versions, then one list per family of questions. Parts that
the time ran out for are missing from the lists, and `skipped` says how many.
"""

from __future__ import annotations

import argparse
import ctypes
import multiprocessing
import os
import sys
import time
from typing import Any, Dict, List, Optional, Tuple

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import attention  # noqa: E402
import convolutions  # noqa: E402
import cudnn_api as api  # noqa: E402
import normalisation  # noqa: E402
import recurrent  # noqa: E402
from written import write_answer  # noqa: E402

CONFIGS = 10
_worker: Dict[str, Any] = {}


def _make_handle(lib: ctypes.CDLL) -> ctypes.c_void_p:
    handle = ctypes.c_void_p()
    status = lib.cudnnCreate(ctypes.byref(handle))
    if status:
        raise api.CudnnError("cudnnCreate", status)
    return handle


def _start(deviceless: bool, deadline: float) -> None:
    lib = api.load()
    _worker["deadline"] = deadline
    _worker["deviceless"] = deviceless
    _worker["lib"] = lib
    _worker["handle"] = None if deviceless else _make_handle(lib)
    backend = api.Backend(lib, _worker["handle"])
    _worker["backend"] = backend
    if deviceless:
        _worker["text"] = api.H200_TEXT
    else:
        _worker["text"] = backend.get_text(backend.device_from_id(0), 2702) or api.H200_TEXT
    _worker["device"] = backend.device_from_text(_worker["text"])


def _convolution(task: Tuple[int, convolutions.Problem]) -> Optional[Dict[str, Any]]:
    index, problem = task
    if time.time() > _worker["deadline"]:
        return None
    backend, device = _worker["backend"], _worker["device"]
    row: Dict[str, Any] = {"problem": problem}
    row["deviceless"] = convolutions.ask(
        backend, problem, device, CONFIGS, keep_plan_text=index < 2
    )
    if _worker["deviceless"]:
        return row
    row["handle"] = convolutions.ask(backend, problem, None, CONFIGS, keep_plan_text=index < 2)
    if index % 10 == 0:
        row["handle_and_properties"] = convolutions.ask(
            backend, problem, device, CONFIGS, plan_uses_handle=True
        )
        row["device_id"] = convolutions.ask(backend, problem, backend.device_from_id(0), CONFIGS)
        row["fallback_handle"] = convolutions.ask(backend, problem, None, CONFIGS, mode=2)
        row["fallback_deviceless"] = convolutions.ask(backend, problem, device, CONFIGS, mode=2)
    if index % 5 == 0:
        for target in (66, 108, 131):
            row[f"handle_sm_{target}"] = convolutions.ask(
                backend, problem, None, CONFIGS, sm_target=target
            )
    return row


def _attention(point: attention.Point) -> Optional[Dict[str, Any]]:
    if time.time() > _worker["deadline"]:
        return None
    started = time.time()
    row = {"point": point, **attention.ask(point)}
    row["seconds"] = round(time.time() - started, 2)
    return row


def _start_attention(deadline: float) -> None:
    import torch

    _worker["deadline"] = deadline
    value = torch.ones(4, device="cuda", requires_grad=True)
    value.sum().backward()


def _single_process(deadline: float) -> Dict[str, Any]:
    import torch

    lib = api.load()
    torch.cuda.init()
    handle = _make_handle(lib)
    answer: Dict[str, Any] = {
        "cudnn": lib.cudnnGetVersion(),
        "cudart": int(lib.cudnnGetCudartVersion()),
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name(0),
        "multiprocessors": torch.cuda.get_device_properties(0).multi_processor_count,
    }
    answer["dropout_states"] = normalisation.dropout_states(lib, handle)
    states = torch.zeros(answer["dropout_states"], dtype=torch.uint8, device="cuda")
    asker = recurrent.Recurrent(lib, handle, states.data_ptr(), answer["dropout_states"])
    rows: List[Any] = []
    points = recurrent.points()
    for index, point in enumerate(points):
        if time.time() > deadline:
            break
        small = point["layers"] * (1 + point["bidirectional"]) <= 4
        rows.append([point, asker.ask(point, with_offsets=small and index % 29 == 0)])
    answer["recurrent"] = rows
    answer["batch_norm"] = normalisation.batch_norms(lib, handle)
    answer["ctc"] = normalisation.ctc_losses(lib, handle)
    return answer


def _collect(pool: Any, function: Any, tasks: List[Any], deadline: float) -> List[Any]:
    """What came back in time; a process that crashes loses its task, not the others."""
    results, rows = pool.imap_unordered(function, tasks, chunksize=1), []
    for _ in tasks:
        try:
            rows.append(results.next(timeout=max(1.0, deadline + 15.0 - time.time())))
        except multiprocessing.TimeoutError:
            break
    return [row for row in rows if row is not None]


def _timed(name: str, started: float) -> None:
    print(f"{name}: {time.time() - started:.1f} s", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True)
    parser.add_argument("--seconds", type=float, default=170.0)
    parser.add_argument("--processes", type=int, default=12)
    parser.add_argument("--deviceless", action="store_true")
    parser.add_argument("--limit", type=int, default=0, help="ask only so many convolutions")
    options = parser.parse_args()
    started = time.time()
    deadline = started + options.seconds
    context = multiprocessing.get_context("spawn")
    answer: Dict[str, Any] = {}
    problems = convolutions.problems()[: options.limit or None]
    with context.Pool(
        options.processes, _start, (options.deviceless, started + 0.5 * options.seconds)
    ) as pool:
        kept = _collect(
            pool, _convolution, list(enumerate(problems)), started + 0.5 * options.seconds
        )
    answer["convolutions"] = kept
    answer["skipped_convolutions"] = len(problems) - len(kept)
    _timed(f"{len(kept)} convolutions", started)
    if not options.deviceless:
        with context.Pool(1) as pool:
            pending = pool.apply_async(_single_process, (started + 0.6 * options.seconds,))
            try:
                answer.update(pending.get(timeout=0.4 * options.seconds))
            except Exception as error:  # the other families are still worth having
                answer["single_process_error"] = repr(error)
        _timed(f"{len(answer.get('recurrent', []))} recurrent points", started)
        points = attention.points()
        with context.Pool(options.processes, _start_attention, (deadline,)) as pool:
            answer["attention"] = _collect(pool, _attention, points, deadline)
        answer["skipped_attention"] = len(points) - len(answer["attention"])
        _timed(f"{len(answer['attention'])} attention points", started)
    write_answer(answer, options.out, "cudnn-explore.json.gz")
    return 0


if __name__ == "__main__":
    sys.exit(main())
