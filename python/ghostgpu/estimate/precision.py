"""The precision that weights are made in."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator

from .options import Job


def own_precision(torch: Any, job: Job) -> Any:
    """What the weights are in; autocast leaves them in single precision."""
    return torch.bfloat16 if job.dtype == "pure-bf16" else torch.float32


@contextlib.contextmanager
def default_precision(torch: Any, job: Job) -> Iterator[None]:
    """Have everything that is made meanwhile be in the job's own precision."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(own_precision(torch, job))
    try:
        yield
    finally:
        torch.set_default_dtype(before)
