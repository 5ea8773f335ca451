"""submitit: a job array of Slurm where there is one, else processes of this machine."""

from __future__ import annotations

import subprocess
import tempfile
import time
from typing import Any

from .protocol import MissingEngine, Task, tell, tell_lost

_PAUSE_S = 0.2
_LONGEST_MINUTES = 60


def run(tasks: list[Task], jobs: int) -> None:
    try:
        import submitit
    except ImportError as error:
        raise MissingEngine("submitit", "submitit") from error
    # Nodes see the folder that the sweep was started in, not this machine's temporary one.
    with tempfile.TemporaryDirectory(prefix=".ghostgpu-submitit-", dir=".") as folder:
        running: dict[int, Any]
        executor = submitit.AutoExecutor(folder=folder)
        executor.update_parameters(name="ghostgpu-sweep", timeout_min=_LONGEST_MINUTES)
        if executor.cluster == "slurm":
            executor.update_parameters(slurm_array_parallelism=jobs)
            with executor.batch():
                array = [_submit(executor, task) for task in tasks]
            running = {task.number: job for task, job in zip(tasks, array)}
            while running:
                _tell_ended(running, tasks)
                time.sleep(_PAUSE_S)
            return
        waiting = list(tasks)
        running = {}
        while waiting or running:
            while waiting and len(running) < jobs:
                task = waiting.pop(0)
                running[task.number] = _submit(executor, task)
            _tell_ended(running, tasks)
            time.sleep(_PAUSE_S)


def _submit(executor: Any, task: Task) -> Any:
    return executor.submit(subprocess.run, task.command, **task.options())


def _tell_ended(running: dict[int, Any], tasks: list[Task]) -> None:
    for task in tasks:
        job = running.get(task.number)
        if job is None or not job.done():
            continue
        del running[task.number]
        try:
            tell(task, job.result())
        except Exception as error:
            tell_lost(task, error)
