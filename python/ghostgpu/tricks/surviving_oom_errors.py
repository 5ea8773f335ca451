"""Tells errors that mean "out of memory" from all others, by type and by what libraries say."""

from __future__ import annotations

import gc
import re
from collections.abc import Collection
from typing import Any

_DISGUISES = re.compile(
    "|".join(
        (
            r"CUDA out of memory",
            r"CUDA error: out of memory",
            r"HIP out of memory",
            r"CUBLAS_STATUS_ALLOC_FAILED",
            # cuBLAS cannot make its handle for want of memory.
            r"CUBLAS_STATUS_NOT_INITIALIZED",
            r"CUDNN_STATUS_ALLOC_FAILED",
            r"CUDNN_STATUS_INTERNAL_ERROR_(DEVICE|HOST)_ALLOCATION_FAILED",
            # No workspace fits, so no convolution is left to choose.
            r"CUDNN_STATUS_NOT_SUPPORTED",
            r"[Uu]nable to find an engine to execute this computation",
            r"FIND was unable to find an engine",
            r"CUSOLVER_STATUS_ALLOC_FAILED",
            r"CUSPARSE_STATUS_(ALLOC_FAILED|INSUFFICIENT_RESOURCES)",
            r"CUFFT_ALLOC_FAILED",
            r"NCCL.*out of memory",
            r"cudaErrorMemoryAllocation",
            r"CUDA_ERROR_OUT_OF_MEMORY",
            r"DefaultCPUAllocator: can't allocate memory",
        )
    ),
    re.DOTALL,
)


def is_out_of_memory(torch: Any, error: BaseException | None) -> bool:
    """Whether an error, or the one behind it, says that memory ran out."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, out_of_memory_error(torch)):
            return True
        if isinstance(error, RuntimeError) and _DISGUISES.search(str(error)):
            return True
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return False


def out_of_memory_error(torch: Any) -> type[RuntimeError]:
    """PyTorch's own class, which has moved in 2.5."""
    kind: type[RuntimeError] = (
        getattr(torch, "OutOfMemoryError", None) or torch.cuda.OutOfMemoryError
    )
    return kind


def given_up(torch: Any, sentence: str) -> RuntimeError:
    """PyTorch's error with a sentence of ours, which says all there is to say."""
    error: Any = out_of_memory_error(torch)(sentence)
    error.is_from_ghostgpu = True
    given: RuntimeError = error
    return given


def is_given_up(error: BaseException) -> bool:
    """Whether an error is one of ours, and needs no further word."""
    return getattr(error, "is_from_ghostgpu", False)


def first_line(error: BaseException) -> str:
    """What an error says, short enough for a report."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0] if len(lines[0]) <= 200 else lines[0][:199] + "…"


def release(cards: Collection[int]) -> None:
    """Let go what a failed attempt has left; to be called when its exception is gone."""
    gc.collect()
    if cards:
        import torch

        torch.cuda.empty_cache()
