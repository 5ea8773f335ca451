"""Lets PyTorch's test cases of several ranks fork their processes instead of spawning them.

A spawned rank imports torch, its compiler and the test file again: seven seconds of processor time
for each rank of each test, more than most of these tests take. Here a server imports them once, and
every rank is a fork of it. The server never touches a card, so a fork may.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

PRELOADED = (
    "torch.testing._internal.common_fsdp",
    "torch.testing._internal.distributed._tensor.common_dtensor",
)


def fork_ranks(file: Path) -> None:
    """Changes how ranks of the tests in `file` are started."""
    # Asking whether there is a card would otherwise initialise CUDA, and a fork could not use it.
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    given = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join(part for part in (str(file.parent), given) if part)
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload([*PRELOADED, file.stem])
    # `MultiProcContinuousTest` asks for "spawn", and takes what was set before.
    multiprocessing.set_start_method("forkserver")

    from torch.testing._internal.common_distributed import MultiProcessTestCase

    def process(target: Callable[..., None], name: str, args: Any, kwargs: Any) -> Any:
        # A test may set variables for its ranks, and the server was started before.
        given = (dict(os.environ), target, args, kwargs)
        return server.Process(target=run_with_environment, name=name, args=given)

    def spawn_processes(self: Any) -> None:
        self._start_processes(process)

    changed: Any = MultiProcessTestCase
    changed._spawn_processes = spawn_processes


def run_with_environment(
    variables: dict[str, str], target: Callable[..., None], args: Any, kwargs: Any
) -> None:
    os.environ.clear()
    os.environ.update(variables)
    target(*args, **kwargs)
