"""Gradient checkpointing: blocks of the model run again in backward instead of keeping anything.

Models of transformers are asked to do it themselves. In others the blocks are found: modules with
modules inside, of which there are several of one class side by side, in a list or as attributes.
A model that is one row of plain layers is cut into pieces (`checkpoint_sequential`).
"""

from __future__ import annotations

import math
import weakref
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Callable

from .faults import quietly
from .hooks import Hooks
from .trick import Trick, counted

_FEWEST_LAYERS = 4
"""A row of fewer plain layers has nothing to save between its ends."""


class Checkpointing(Trick):
    """Activations are computed again in backward."""

    name = "checkpointing"

    def __init__(self, torch: Any, hooks: Hooks, options: Mapping[str, str]) -> None:
        super().__init__(torch, hooks, options)
        self._models: weakref.WeakSet[Any] = weakref.WeakSet()
        self._blocks: weakref.WeakSet[Any] = weakref.WeakSet()
        self._rows: weakref.WeakSet[Any] = weakref.WeakSet()
        self._used: weakref.WeakSet[Any] = weakref.WeakSet()
        self._asked: list[str] = []
        self._names: Counter[str] = Counter()
        self._is_inside = False
        self._statistics: set[str] = set()
        """Classes of layers that run twice and whose statistics move each time."""

    def install(self) -> None:
        # The outer one comes last in the list of those around a call.
        self.hooks.around_modules.append(self._call_block)
        self.hooks.around_models.append(self._call_model)

    def _call_model(
        self, make: Callable[..., Any], model: Any, arguments: Any, options: Any
    ) -> Any:
        if model.training and self.torch.is_grad_enabled() and model not in self._models:
            self._models.add(model)
            quietly(self._look_at)(model)
        return make(*arguments, **options)

    def _look_at(self, model: Any) -> None:
        if self._ask(model):
            return
        blocks = list(blocks_of(self.torch, model))
        for block in blocks:
            self._blocks.add(block)
        if not blocks:
            for row in rows_of(self.torch, model):
                self._rows.add(row)

    def _ask(self, model: Any) -> bool:
        """Have models do it that can; whether there was one."""
        has_asked = False
        for module in model.modules():
            enable = getattr(module, "gradient_checkpointing_enable", None)
            if not callable(enable) or not getattr(module, "supports_gradient_checkpointing", True):
                continue
            if getattr(module, "is_gradient_checkpointing", False):
                has_asked = True  # by the script itself, or through the model around it
                continue
            enable()
            config = getattr(module, "config", None)
            if config is not None and getattr(config, "use_cache", False):
                config.use_cache = False
            self._asked.append(type(module).__name__)
            self._note_statistics(module)
            has_asked = True
        return has_asked

    def _call_block(
        self, make: Callable[..., Any], module: Any, arguments: Any, options: Any
    ) -> Any:
        is_block, is_row = module in self._blocks, module in self._rows
        is_wanted = (is_block or is_row) and module.training and self.torch.is_grad_enabled()
        is_inside = self._is_inside or self.hooks.is_in_backward
        has_one_input = len(arguments) == 1 and not options
        if is_inside or not is_wanted or (is_row and not has_one_input):
            return make(*arguments, **options)
        import torch.utils.checkpoint

        checkpoint: Any = torch.utils.checkpoint

        if module not in self._used:
            self._used.add(module)
            self._names[type(module).__name__] += 1
            self._note_statistics(module)
        self._is_inside = True
        try:
            if is_block:
                return checkpoint.checkpoint(make, *arguments, use_reentrant=False, **options)
            layers = list(module)
            return checkpoint.checkpoint_sequential(
                layers, pieces(len(layers)), arguments[0], use_reentrant=False
            )
        finally:
            self._is_inside = False

    def _note_statistics(self, module: Any) -> None:
        # Dropout is drawn again from the same state of the generator; averages are not set back.
        averaging = self.torch.nn.modules.batchnorm._NormBase
        self._statistics |= {
            type(part).__name__
            for part in module.modules()
            if isinstance(part, averaging) and part.training and part.running_mean is not None
        }

    def did(self) -> str | None:
        if self._asked:
            return f"gradient_checkpointing_enable() of {', '.join(self._asked[:3])}"
        if not self._names:
            return None
        if len(self._rows):
            return f"{counted(self._names, 'row', 'rows')} of layers run in pieces"
        return f"{counted(self._names, 'module', 'modules')} checkpointed"

    def other_results(self) -> str | None:
        if not self._statistics:
            return None
        named = " and ".join(sorted(self._statistics))
        return f"{named} inside them updates its running statistics twice in every step"

    def line(self) -> str | None:
        if self._asked:
            return "model.gradient_checkpointing_enable(); model.config.use_cache = False"
        if len(self._rows):
            count = pieces(max(len(list(row)) for row in self._rows))
            return (
                f"torch.utils.checkpoint.checkpoint_sequential(layers, {count}, x, "
                "use_reentrant=False)"
            )
        named = " and ".join(sorted(self._names))
        return (
            "x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)   "
            f"# where each {named} is called"
        )


def pieces(layers: int) -> int:
    """Into how many pieces a row is cut: their ends are kept, and the inside of one."""
    return max(2, round(math.sqrt(layers)))


def blocks_of(torch: Any, model: Any) -> Iterator[Any]:
    """The model's repeated blocks, none inside another."""
    lists = (torch.nn.ModuleList, torch.nn.Sequential)
    in_lists = [module for module in model.modules() if isinstance(module, lists)]
    found = _repeated(torch, in_lists) or _repeated(torch, list(model.modules()))
    inner = {id(part) for block in found for part in block.modules() if part is not block}
    return (block for block in found if id(block) not in inner)


def _repeated(torch: Any, parents: list[Any]) -> list[Any]:
    plain = (torch.nn.ModuleList, torch.nn.ModuleDict, torch.nn.Sequential)
    found: dict[int, Any] = {}
    for parent in parents:
        children = [
            child
            for child in parent.children()
            if type(child) not in plain and next(child.children(), None) is not None
        ]
        count = Counter(type(child) for child in children)
        found.update({id(child): child for child in children if count[type(child)] >= 2})
    return list(found.values())


def rows_of(torch: Any, model: Any) -> Iterator[Any]:
    """Rows of plain layers, one after the other."""
    for module in model.modules():
        if type(module) is torch.nn.Sequential and len(module) >= _FEWEST_LAYERS:
            yield module
