"""Kernels that a script wrote in Triton: what they are given may be written by them.

PyTorch does not count such writes in the version of a tensor, so a row of zeros that a kernel fills
would keep its zeros among the known values.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from .known_values import KnownValues

MODULE = "triton.runtime.jit"


class TritonKernels:
    """Forgets the values of every tensor that a kernel was started with."""

    def __init__(self, torch: Any, known: KnownValues) -> None:
        self._torch = torch
        self._known = known

    def after_import(self, module: ModuleType) -> None:
        """Wrap what `kernel[grid](...)` calls."""
        if module.__name__ != MODULE:
            return
        anything: Any = module
        original = anything.JITFunction.run

        @functools.wraps(original)
        def run(kernel: Any, *arguments: Any, **options: Any) -> Any:
            result = original(kernel, *arguments, **options)
            for each in (*arguments, *options.values()):
                if isinstance(each, self._torch.Tensor) and each.is_cuda:
                    self._known.overwrite(each, None)
            return result

        anything.JITFunction.run = run
