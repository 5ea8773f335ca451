"""This machine alone: a few processes at a time."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor, as_completed

from .protocol import Task, tell, tell_lost


def run(tasks: list[Task], jobs: int) -> None:
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        futures = {pool.submit(_run, task): task for task in tasks}
        for future in as_completed(futures):
            try:
                tell(futures[future], future.result())
            except OSError as error:
                tell_lost(futures[future], error)


def _run(task: Task) -> subprocess.CompletedProcess[str]:
    return subprocess.run(task.command, **task.options())
