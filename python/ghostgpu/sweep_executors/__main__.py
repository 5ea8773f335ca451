"""`python -m sweep_executors ENGINE JOBS`: tasks on standard input, results on standard output."""

from __future__ import annotations

import sys

from . import with_dask, with_processes, with_ray, with_submitit
from .protocol import MissingEngine, read_tasks, tell_missing

ENGINES = {
    "processes": with_processes.run,
    "ray": with_ray.run,
    "dask": with_dask.run,
    "submitit": with_submitit.run,
}


def main(engine: str, jobs: int) -> int:
    try:
        ENGINES[engine](list(read_tasks(sys.stdin)), jobs)
    except MissingEngine as missing:
        tell_missing(missing)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
