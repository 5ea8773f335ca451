"""Dask: the cluster that its configuration names (`DASK_SCHEDULER_ADDRESS`), else this machine."""

from __future__ import annotations

import subprocess

from .protocol import MissingEngine, Task, tell, tell_lost


def run(tasks: list[Task], jobs: int) -> None:
    try:
        import dask
        from distributed import Client, LocalCluster, as_completed
    except ImportError as error:
        raise MissingEngine("Dask", "distributed") from error
    address = dask.config.get("scheduler-address", None)
    # Rehearsals are processes of their own: threads that wait for them are enough.
    cluster = address or LocalCluster(
        n_workers=1, threads_per_worker=jobs, processes=False, dashboard_address=None
    )
    with Client(cluster) as client:
        futures = {
            # The same command may have another answer later: results are not kept.
            client.submit(subprocess.run, task.command, pure=False, **task.options()): task
            for task in tasks
        }
        for future in as_completed(futures):
            try:
                tell(futures[future], future.result())
            except Exception as error:
                tell_lost(futures[future], error)
    if not address:
        cluster.close()
