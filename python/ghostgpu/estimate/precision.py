"""The precision of the weights."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator

from .options import Job


def own_precision(torch: Any, job: Job) -> Any:
    """The dtype of the weights; autocast leaves them in single precision."""
    return torch.bfloat16 if job.dtype == "pure-bf16" else torch.float32


@contextlib.contextmanager
def default_precision(torch: Any, job: Job) -> Iterator[None]:
    """Create tensors in the job's precision."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(own_precision(torch, job))
    try:
        yield
    finally:
        torch.set_default_dtype(before)
