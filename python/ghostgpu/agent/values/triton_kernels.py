"""Kernels that a script wrote in Triton, which may write to any of their arguments.

PyTorch does not count such writes in a tensor's version, so a tensor of zeros that a kernel fills
would still be known as zeros.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from .known_values import KnownValues

MODULE = "triton.runtime.jit"


class TritonKernels:
    """Forgets the values of every tensor that is passed to a kernel."""

    def __init__(self, torch: Any, known: KnownValues) -> None:
        self._torch = torch
        self._known = known

    def after_import(self, module: ModuleType) -> None:
        """Wrap the method that `kernel[grid](...)` calls."""
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
