"""Whether the script evaluates: without gradients, or after `eval()`."""

from __future__ import annotations

from typing import Any

from .hooks import Hooks


class Evaluating:
    """Follows the script's own calls of `train()` and `eval()`."""

    def __init__(self, torch: Any, hooks: Hooks) -> None:
        self._torch = torch
        self._last_mode = True
        hooks.before_mode.append(self._note_mode)

    def _note_mode(self, module: Any, mode: bool) -> None:
        self._last_mode = mode

    def __call__(self) -> bool:
        return not self._torch.is_grad_enabled() or not self._last_mode
