"""Adam with 8-bit state, from bitsandbytes or torchao, whichever is installed.

bitsandbytes is preferred: torchao compiles its step, and accepts a learning rate that the script
assigns only as a tensor, into which it is converted here.

Saves: about three quarters of Adam's state.
Costs: nothing much; the state is rounded.
Numbers: precision.
Conflicts: optimizer-form, adafactor, offload-optimizer, optimizer-in-backward.
"""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Mapping
from typing import Any

from .hooks import Hooks
from .replaced_optimizer import groups_without, replace_adam
from .trick import Trick

_KEPT = ("lr", "betas", "eps", "weight_decay")
_FOREIGN = ("amsgrad", "foreach", "fused", "capturable", "differentiable", "maximize")


class EightBitOptimizer(Trick):
    """An 8-bit Adam wherever the script makes an Adam."""

    name = "eight-bit-optimizer"

    def __init__(self, torch: Any, hooks: Hooks, options: Mapping[str, str]) -> None:
        super().__init__(torch, hooks, options)
        self._library = ""
        self._replaced: Counter[str] = Counter()

    def install(self) -> None:
        for library in ("bitsandbytes", "torchao"):
            if importlib.util.find_spec(library) is not None:
                self._library = library
                break
        else:
            raise self.refused(
                "8-bit optimizers need bitsandbytes or torchao, and neither is installed",
                "pip install bitsandbytes, or use --optimizer adafactor",
            )
        replace_adam(self.torch, self._make)
        self.hooks.after_optimizer.append(self._check)

    def _make(self, kind: Any, given: dict[str, Any]) -> Any:
        for name in ("amsgrad", "maximize", "differentiable"):
            if given.get(name):
                raise self.refused(
                    f"8-bit {kind.__name__} has no `{name}`", f"leave out `{name}`, or --optimizer"
                )
        kept = {name: given[name] for name in _KEPT if name in given}
        self._replaced[kind.__name__] += 1
        parameters = groups_without(given["params"], _FOREIGN)
        made = getattr(self._optimizers(), f"{kind.__name__}8bit")(parameters, **kept)
        if self._library == "torchao":
            made.register_step_pre_hook(self._keep_rates_in_tensors)
        return made

    def _keep_rates_in_tensors(self, optimizer: Any, arguments: Any, options: Any) -> None:
        """Convert learning rates to tensors: `group["lr"] = rate` makes torchao's step fail."""
        for group in optimizer.param_groups:
            if not isinstance(group["lr"], self.torch.Tensor):
                group["lr"] = self.torch.tensor(group["lr"], dtype=self.torch.float32)

    def _optimizers(self) -> Any:
        # Imported only here: both import torch, and torch is being imported while we install.
        if self._library == "bitsandbytes":
            return importlib.import_module("bitsandbytes.optim")
        try:
            return importlib.import_module("torchao.optim")
        except ModuleNotFoundError:
            return importlib.import_module("torchao.prototype.low_bit_optim")

    def _check(self, optimizer: Any) -> None:
        module = type(optimizer).__module__
        if not module.startswith(("bitsandbytes", "torchao")):
            raise self.refused(
                f"{type(optimizer).__name__} has no 8-bit form here: only Adam and AdamW have",
                "leave out --optimizer 8bit, or have the script use AdamW",
            )

    def did(self) -> str | None:
        if not self._replaced:
            return None
        return f"{' and '.join(sorted(self._replaced))} with 8-bit state of {self._library}"

    def nothing_because(self) -> str:
        return "the script made no Adam or AdamW"

    def line(self) -> str:
        library = self._library or "bitsandbytes"
        return f"optimizer = {library}.optim.AdamW8bit(model.parameters(), lr=...)"
