"""`torch.backends.cudnn.benchmark = False`, whatever the script sets.

Saves: workspaces of the algorithms that a search tries.
Costs: convolutions may be slower.
Numbers: rounding: other algorithms may be chosen.
Conflicts: none.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from .hooks import Hooks
from .trick import Trick
from .user_code import users_line


class NoCudnnBenchmark(Trick):
    """Ignores the script's request for a search."""

    name = "no-cudnn-benchmark"

    def __init__(self, torch: Any, hooks: Hooks, options: Mapping[str, str]) -> None:
        super().__init__(torch, hooks, options)
        self._place: str | None = None

    def install(self) -> None:
        setter = self.torch._C._set_cudnn_benchmark
        without = self._without(setter)
        self.torch._C._set_cudnn_benchmark = without
        # The module's property holds its own reference to the function.
        attribute = vars(type(self.torch.backends.cudnn)).get("benchmark")
        if attribute is not None and getattr(attribute, "setter", None) is setter:
            attribute.setter = without

    def _without(self, setter: Any) -> Any:
        @functools.wraps(setter)
        def set_benchmark(wanted: bool) -> None:
            if wanted:
                self._place = self._place or users_line()
            setter(False)

        return set_benchmark

    def did(self) -> str | None:
        return self._place and f"the search that {self._place} switches on left out"

    def nothing_because(self) -> str:
        return "the script does not switch cuDNN's search on"

    def line(self) -> str | None:
        return self._place and f"{self._place}: torch.backends.cudnn.benchmark = False"
