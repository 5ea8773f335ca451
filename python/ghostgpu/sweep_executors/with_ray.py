"""Ray: the cluster that `RAY_ADDRESS` names, else this machine."""

from __future__ import annotations

import os
import subprocess

from .protocol import MissingEngine, Task, tell, tell_lost


def run(tasks: list[Task], jobs: int) -> None:
    try:
        import ray
    except ImportError as error:
        raise MissingEngine("Ray", "ray") from error
    is_cluster = bool(os.environ.get("RAY_ADDRESS"))
    own = {} if is_cluster else {"num_cpus": jobs, "include_dashboard": False}
    ray.init(log_to_driver=False, logging_level="ERROR", **own)
    try:
        start = ray.remote(num_cpus=1, max_retries=0)(subprocess.run)
        waiting = {start.remote(task.command, **task.options()): task for task in tasks}
        while waiting:
            [ready], _ = ray.wait(list(waiting), num_returns=1)
            task = waiting.pop(ready)
            try:
                tell(task, ray.get(ready))
            except Exception as error:
                tell_lost(task, error)
    finally:
        ray.shutdown()
