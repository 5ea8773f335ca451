"""Has PyTorch's profiler announce every operator, to the stand-in library, which listens.

It does so in the mode that was made for NVIDIA's tools: a range with the operator's name around
each. A script that starts a profiler of its own has precedence: only one can be on.
"""

from __future__ import annotations

import functools
from typing import Any


class Operators:
    """The announcing profiler."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._profiler: Any = None

    def start(self) -> None:
        """Announce from now on."""
        profiler = self._torch.autograd.profiler
        self._profiler = profiler.emit_nvtx(record_shapes=False)
        self._profiler.__enter__()
        for name in ("_prepare_profiler", "_enable_profiler"):
            self._give_way_to(profiler, name)

    def stop(self) -> None:
        """Announce no longer."""
        running, self._profiler = self._profiler, None
        if running is not None:
            running.__exit__(None, None, None)

    def _give_way_to(self, owner: Any, name: str) -> None:
        original = getattr(owner, name, None)
        if original is None:
            return

        @functools.wraps(original)
        def starting(*arguments: Any, **options: Any) -> Any:
            self.stop()
            return original(*arguments, **options)

        setattr(owner, name, starting)
