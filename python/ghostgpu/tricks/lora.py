"""Low-rank adapters from peft instead of training every weight.

Adapters are added to linear layers when a model is moved to its device, before the script makes an
optimizer of its parameters, which then holds frozen weights that never get a gradient.

Saves: gradients and optimizer state of every frozen weight.
Costs: a little time for the adapters.
Numbers: training.
Conflicts: none.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Mapping
from typing import Any, Callable

from .dynamo_shield import shielded
from .hooks import Hooks
from .trick import Trick


class Lora(Trick):
    """Adapters for the first model that is moved to a device."""

    name = "lora"

    def __init__(self, torch: Any, hooks: Hooks, options: Mapping[str, str]) -> None:
        super().__init__(torch, hooks, options)
        self._rank = int(options["rank"])
        self._targets = options["targets"]
        self._did: str | None = None
        self._is_busy = False

    def install(self) -> None:
        if importlib.util.find_spec("peft") is None:
            raise self.refused("LoRA needs peft, which is not installed", "pip install peft")
        module_type = self.torch.nn.Module
        for name in ("to", "cuda"):
            original = getattr(module_type, name)
            setattr(module_type, name, shielded(self.torch, self._moving(original)))

    def _moving(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def move(module: Any, *arguments: Any, **options: Any) -> Any:
            if self._did is None and not self._is_busy:
                self._is_busy = True
                try:
                    self._adapt(module)
                finally:
                    self._is_busy = False
            return original(module, *arguments, **options)

        return move

    def _adapt(self, model: Any) -> None:
        targets = self._names(model)
        if not targets or not any(each.requires_grad for each in model.parameters()):
            return
        peft = importlib.import_module("peft")
        config = peft.LoraConfig(r=self._rank, lora_alpha=2 * self._rank, target_modules=targets)
        peft.inject_adapter_in_model(config, model)
        trained = 0
        for name, parameter in model.named_parameters():
            parameter.requires_grad_("lora_" in name)
            trained += parameter.numel() if parameter.requires_grad else 0
        everything = sum(each.numel() for each in model.parameters())
        self._did = (
            f"{len(targets)} layers of {type(model).__name__} have adapters of rank {self._rank}: "
            f"{trained:,} of {everything:,} weights are trained"
        )

    def _names(self, model: Any) -> list[str]:
        kinds = [self.torch.nn.Linear]
        # GPT-2 has its own class of linear layers.
        conv1d = (
            importlib.import_module("transformers.pytorch_utils").Conv1D
            if (
                importlib.util.find_spec("transformers") is not None
                and any(type(part).__name__ == "Conv1D" for part in model.modules())
            )
            else None
        )
        if conv1d is not None:
            kinds.append(conv1d)
        names = [
            name for name, part in model.named_modules() if isinstance(part, tuple(kinds)) and name
        ]
        if self._targets != "all-linear":
            wanted = [each.strip() for each in self._targets.split(",")]
            return [
                name
                for name in names
                if any(name == each or name.endswith("." + each) for each in wanted)
            ]
        # The last one is the head, which is trained in full or not at all.
        return names[:-1]

    def did(self) -> str | None:
        return self._did

    def nothing_because(self) -> str:
        return "no model with such linear layers was moved to a device"
