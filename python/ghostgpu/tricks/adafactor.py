"""`torch.optim.Adafactor` in place of Adam: a row and a column of state for each matrix.

Saves: almost all optimizer state.
Costs: another optimizer: learning rates may need tuning.
Numbers: training.
Conflicts: optimizer-form, eight-bit-optimizer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from .hooks import Hooks
from .replaced_optimizer import groups_without, replace_adam
from .trick import Trick

_KEPT = ("lr", "weight_decay", "maximize")
"""Options that both have; momentum and similar options have no counterpart."""

_FOREIGN = ("betas", "eps", "amsgrad", "foreach", "fused", "capturable", "differentiable")


class Adafactor(Trick):
    """Adafactor wherever the script makes an Adam."""

    name = "adafactor"

    def __init__(self, torch: Any, hooks: Hooks, options: Mapping[str, str]) -> None:
        super().__init__(torch, hooks, options)
        self._replaced: Counter[str] = Counter()

    def install(self) -> None:
        if not hasattr(self.torch.optim, "Adafactor"):
            raise self.refused(
                f"torch {self.torch.__version__} has no Adafactor", "torch 2.5 and newer have it"
            )
        replace_adam(self.torch, self._make)

    def _make(self, kind: Any, given: dict[str, Any]) -> Any:
        kept = {name: given[name] for name in _KEPT if name in given}
        self._replaced[kind.__name__] += 1
        parameters = groups_without(given["params"], _FOREIGN)
        return self.torch.optim.Adafactor(parameters, **kept)

    def did(self) -> str | None:
        if not self._replaced:
            return None
        return f"{' and '.join(sorted(self._replaced))} replaced by Adafactor"

    def nothing_because(self) -> str:
        return "the script made no Adam or AdamW"

    def line(self) -> str:
        return "optimizer = torch.optim.Adafactor(model.parameters(), lr=...)"
