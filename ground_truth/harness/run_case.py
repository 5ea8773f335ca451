"""Runs one case in this process and writes what it measured as JSON.

    python ground_truth/harness/run_case.py gpt2-bf16 --out gpt2-bf16.json --events events.json.gz

`--device cpu --tiny` only tries the case, on a small model, and measures nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import platform
import re
import sys
import time
import traceback
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

LIBRARIES = ("torchvision", "transformers", "accelerate", "lightning", "pytorch-lightning")


def arguments(line: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--events", type=Path, help="where the allocator's history goes")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--batch-size", type=int)
    return parser.parse_args(line)


def main() -> int:
    options = arguments()
    import cases  # noqa: F401
    from case import CASES

    if options.name not in CASES:
        print(f"no case is called {options.name}", file=sys.stderr)
        return 2
    start_again_with(CASES[options.name].process_environment())
    return measure_and_write(options)


def measure_and_write(options: argparse.Namespace) -> int:
    result = measure_case(options)
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(result, indent=1) + "\n")
    else:
        print(json.dumps(result, indent=1))
    if result["outcome"] == "failed":
        print(result["failure"], file=sys.stderr)
    return 1 if result["outcome"] == "failed" else 0


def start_again_with(environment: dict[str, str]) -> None:
    """Replaces this process unless it already has the case's settings.

    PyTorch reads them while it is imported, and the table of cases cannot be read without it.
    """
    if any(os.environ.get(name, "") != value for name, value in environment.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **environment})


def measure_case(options: argparse.Namespace) -> dict[str, Any]:
    import torch

    from case import CASES, NO_ENGINE
    from context import Context
    from measure import Recorder, reading
    from training import train

    case = CASES[options.name]
    recorder = Recorder(with_events=options.events is not None)
    on_card = options.device == "cuda"
    context = Context(
        case,
        device=options.device,
        tiny=options.tiny,
        batch_size=options.batch_size,
        on_start=(lambda: start_card(recorder, case)) if on_card else (lambda: None),
        on_step=recorder.step if on_card else (lambda: None),
    )
    torch.manual_seed(0)
    started = time.monotonic()
    outcome, failure, oom = "finished", None, None
    try:
        (case.script or train)(context)
    except torch.OutOfMemoryError as error:
        outcome, oom = "oom", {"text": str(error), "after_steps": len(recorder.steps)}
        if not on_card:
            failure = traceback.format_exc()
        # The traceback holds the failed step's tensors; the final reading comes without them.
        error.__traceback__ = None
    except Exception as error:  # noqa: BLE001
        if case.cap_gib is not None and NO_ENGINE in str(error):
            outcome, oom = "no-engine", {"text": str(error), "after_steps": len(recorder.steps)}
            error.__traceback__ = None
        else:
            outcome, failure = "failed", traceback.format_exc()
    result: dict[str, Any] = {
        "case": case.name,
        "family": case.family,
        "definition": case.definition(),
        "outcome": outcome,
        "oom": oom,
        "failure": failure,
        "before_model": recorder.before_model,
        "steps": recorder.steps,
        "seconds": round(time.monotonic() - started, 2),
        "command": f"python ground_truth/harness/run_case.py {case.name}",
    }
    if on_card:
        # A card in an error state must not hide what was measured before.
        with contextlib.suppress(Exception):
            result["final"] = reading()
        with contextlib.suppress(Exception):
            write_events(options.events, recorder.events(), result)
    result["environment"] = environment_facts(on_card)
    return result


def start_card(recorder: Any, case: Any) -> None:
    import torch

    from measure import wait_until_alone

    torch.cuda.init()
    if case.alone:
        wait_until_alone(limit_s=10.0)
    if case.cap_gib is not None:
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(case.cap_gib * 2**30 / total)
    recorder.start()


def write_events(path: Path | None, events: dict[str, Any] | None, result: dict[str, Any]) -> None:
    if path is None or events is None:
        return
    result["event_count"] = len(events["actions"])
    path.parent.mkdir(parents=True, exist_ok=True)
    # No time stamp and no file name inside, so that equal histories are equal files.
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, 0) as packed:
        packed.write(json.dumps(events, separators=(",", ":")).encode())


def environment_facts(on_card: bool) -> dict[str, Any]:
    import torch

    facts: dict[str, Any] = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
        "allocator_settings": os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""),
    }
    from importlib import metadata

    for name in LIBRARIES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            facts[name] = metadata.version(name)
    if on_card:
        with contextlib.suppress(Exception):
            properties = torch.cuda.get_device_properties(0)
            facts["gpu"] = properties.name
            facts["capability"] = f"{properties.major}.{properties.minor}"
            facts["total_bytes"] = properties.total_memory
            facts["driver"] = driver_version()
    return facts


def driver_version() -> str | None:
    import ctypes

    from probe import cuda_calls

    with contextlib.suppress(LookupError, OSError, cuda_calls.CudaCallFailed):
        cuda_calls.nvml.check("nvmlInit_v2")
        text = ctypes.create_string_buffer(96)
        cuda_calls.nvml.check("nvmlSystemGetDriverVersion", text, ctypes.c_uint(96))
        return text.value.decode()
    version = Path("/proc/driver/nvidia/version")
    found = (
        re.search(r"\b(\d{3}\.\d+(\.\d+)?)\b", version.read_text()) if version.exists() else None
    )
    return found.group(1) if found else None


if __name__ == "__main__":
    sys.exit(main())
