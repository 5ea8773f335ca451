"""`with torch.no_grad():` around the calls of models that are in `eval()`.

Not around calls whose inputs have gradients: a frozen critic, a perceptual loss or an adversarial
attack needs those of its inputs.

Saves: the graph of evaluation passes that forgot it.
Costs: nothing.
Numbers: identical.
Conflicts: none.
Refused: models that the script trains while they are in `eval()`, such as one without dropout.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any, Callable

from .hooks import Hooks
from .trick import Trick
from .user_code import users_line

_ALTERNATIVE = "leave --eval-no-grad out"


class NoGradEvaluation(Trick):
    """Disables gradients while a model evaluates."""

    name = "no-grad-evaluation"

    def __init__(self, torch: Any, hooks: Hooks, options: Mapping[str, str]) -> None:
        super().__init__(torch, hooks, options)
        self._place: str | None = None
        self._model = ""
        self._without: weakref.WeakSet[Any] = weakref.WeakSet()
        """Models that were called without a graph since the last optimizer step."""
        self._with: weakref.WeakSet[Any] = weakref.WeakSet()
        """Models that were called with one."""

    def install(self) -> None:
        self.hooks.around_models.append(self._call)
        self.hooks.around_steps.append(self._step)

    def _call(self, make: Callable[..., Any], module: Any, arguments: Any, options: Any) -> Any:
        if not self.torch.is_grad_enabled():
            return make(*arguments, **options)
        if module.training or self._has_gradients(arguments, options):
            self._with.add(module)
            return make(*arguments, **options)
        if any(each.requires_grad for each in module.parameters()):
            self._without.add(module)
            if self._place is None:
                self._place, self._model = users_line(), type(module).__name__
        with self.torch.no_grad():
            return make(*arguments, **options)

    def _has_gradients(self, arguments: Any, options: Any) -> bool:
        from .chunking.nested import flatten_arguments

        leaves = flatten_arguments(arguments, options).leaves
        return any(isinstance(leaf, self.torch.Tensor) and leaf.requires_grad for leaf in leaves)

    def _step(self, make: Callable[..., Any], optimizer: Any, arguments: Any, options: Any) -> Any:
        # A model that only evaluates is called with a graph elsewhere, before it is stepped.
        for module in self._without - self._with:
            if self._trains(optimizer, module):
                raise self.refused(
                    f"the script trains {type(module).__name__} while it is in eval(), and "
                    "would get no gradients for it",
                    _ALTERNATIVE,
                )
        self._without.clear()
        self._with.clear()
        return make(*arguments, **options)

    def _trains(self, optimizer: Any, module: Any) -> bool:
        stepped = {id(each) for group in optimizer.param_groups for each in group["params"]}
        return any(each.requires_grad and id(each) in stepped for each in module.parameters())

    def did(self) -> str | None:
        return self._place and f"{self._model} in eval() called without a graph at {self._place}"

    def nothing_because(self) -> str:
        return "the script calls no model in eval() with a graph"

    def line(self) -> str | None:
        return self._place and f"{self._place}: with torch.no_grad(): out = model(x)"
