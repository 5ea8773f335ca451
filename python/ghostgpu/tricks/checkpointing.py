"""Gradient checkpointing: blocks of the model are recomputed in backward instead of kept.

Models of transformers use their own implementation. In other models the blocks are found: modules
that contain modules, several of one class side by side, in a list or as attributes. A model that is
one row of plain layers is cut into pieces (`checkpoint_sequential`). What the script checkpoints
itself is left alone, and key-value caches are switched off, because blocks that run twice would
fill them twice. Batch norm in blocks updates its statistics only once.

Saves: the activations inside the blocks; only what goes in is kept.
Costs: one more forward pass of the blocks, about a third of a step.
Numbers: identical.
Conflicts: none.
"""

from __future__ import annotations

import fnmatch
import functools
import inspect
import math
import sys
import weakref
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Callable

from .hooks import Hooks
from .trick import Trick, counted

_FEWEST_LAYERS = 4
"""With fewer plain layers in a row, there is nothing to save between its ends."""


class Checkpointing(Trick):
    """Recomputes activations in backward."""

    name = "checkpointing"

    def __init__(self, torch: Any, hooks: Hooks, options: Mapping[str, str]) -> None:
        super().__init__(torch, hooks, options)
        self._models: weakref.WeakSet[Any] = weakref.WeakSet()
        self._blocks: weakref.WeakSet[Any] = weakref.WeakSet()
        self._rows: weakref.WeakSet[Any] = weakref.WeakSet()
        self._used: weakref.WeakSet[Any] = weakref.WeakSet()
        self._asked: list[str] = []
        self._names: Counter[str] = Counter()
        self._longest_row = 0
        """How many layers the longest row that ran in pieces has."""
        self._is_inside = False
        self._wanted = options["blocks"]
        self._keeps_matmuls = options["keep"] == "matmuls"
        self._averaging: weakref.WeakSet[Any] = weakref.WeakSet()
        """Layers that run twice and whose statistics must be updated once."""
        self._statistics: set[str] = set()
        """The classes of these layers."""

    def install(self) -> None:
        if self._keeps_matmuls and not hasattr(
            self._checkpoint(), "create_selective_checkpoint_contexts"
        ):
            raise self.refused(
                f"torch {self.torch.__version__} cannot keep the results of single operations",
                "torch 2.4 and newer can; leave `keep` out",
            )
        # The last function in this list is the outermost one around a call.
        self.hooks.around_modules.append(self._call_block)
        self.hooks.around_models.append(self._call_model)

    def _checkpoint(self) -> Any:
        import torch.utils.checkpoint

        module: Any = torch.utils.checkpoint
        return module

    def _call_model(
        self, make: Callable[..., Any], model: Any, arguments: Any, options: Any
    ) -> Any:
        if model.training and self.torch.is_grad_enabled() and model not in self._models:
            self._models.add(model)
            self._look_at(model)
        return make(*arguments, **options)

    def _look_at(self, model: Any) -> None:
        is_auto = self._wanted == "auto"
        if is_auto and not self._keeps_matmuls and self._ask(model):
            return
        if is_auto or self._wanted.isdigit():
            blocks = list(blocks_of(self.torch, model))
            if not is_auto:
                blocks = spread(blocks, int(self._wanted))
        else:
            blocks = self._named(model)
        for block in blocks:
            self._blocks.add(block)
            self._note_statistics(block)
        if blocks:
            switch_off_cache(model)
        elif is_auto:
            for row in rows_of(self.torch, model):
                self._rows.add(row)
                self._note_statistics(row)

    def _named(self, model: Any) -> list[Any]:
        found, missing = named_blocks(model, self._wanted)
        has_parameters = any(True for _ in model.parameters())
        if not found and has_parameters:
            raise self.refused(*no_such_block(model, missing))
        return found

    def _ask(self, model: Any) -> bool:
        """Switch it on in models that support it; returns whether there was one."""
        has_asked = False
        for module in model.modules():
            enable = getattr(module, "gradient_checkpointing_enable", None)
            if not callable(enable) or not getattr(module, "supports_gradient_checkpointing", True):
                continue
            if getattr(module, "is_gradient_checkpointing", False):
                has_asked = True  # already on: by the script, or through the model around it
                continue
            if "gradient_checkpointing_kwargs" in inspect.signature(enable).parameters:
                # The reentrant form needs inputs with gradients, which frozen embeddings lack.
                enable(gradient_checkpointing_kwargs={"use_reentrant": False})
            else:
                enable()
            switch_off_cache(module)
            self._asked.append(type(module).__name__)
            self._note_statistics(module)
            has_asked = True
        return has_asked

    def _call_block(
        self, make: Callable[..., Any], module: Any, arguments: Any, options: Any
    ) -> Any:
        if self.hooks.is_in_backward:
            if module in self._averaging and module.training and module.track_running_stats:
                return _without_statistics(make, module, arguments, options)
            return make(*arguments, **options)
        is_block, is_row = module in self._blocks, module in self._rows
        is_wanted = (is_block or is_row) and module.training and self.torch.is_grad_enabled()
        has_one_input = len(arguments) == 1 and not options
        if self._is_inside or not is_wanted or (is_row and not has_one_input):
            return make(*arguments, **options)
        checkpoint = self._checkpoint()
        if module not in self._used:
            if _is_called_by(checkpoint.__file__):
                self._blocks.discard(module)
                self._rows.discard(module)
                return make(*arguments, **options)
            self._used.add(module)
            self._names[type(module).__name__] += 1
            if is_row:
                self._longest_row = max(self._longest_row, len(list(module)))
        self._is_inside = True
        try:
            if is_block:
                return self._run_again(checkpoint, make, module, arguments, options)
            return self._run_in_pieces(checkpoint, list(module), arguments[0])
        finally:
            self._is_inside = False

    def _run_again(
        self, checkpoint: Any, make: Callable[..., Any], module: Any, arguments: Any, options: Any
    ) -> Any:
        tensors = [each for each in arguments if isinstance(each, self.torch.Tensor)]
        versions = [each._version for each in tensors]
        result = checkpoint.checkpoint(
            make, *arguments, use_reentrant=False, **self._contexts(), **options
        )
        if [each._version for each in tensors] != versions:
            raise self.refused(
                f"{type(module).__name__} writes over its own input, from which checkpointing "
                "would compute it again",
                "leave out inplace=True for its first layer, or name other modules to --checkpoint",
            )
        return result

    def _run_in_pieces(self, checkpoint: Any, layers: list[Any], tensor: Any) -> Any:
        """Like `checkpoint_sequential`, but no piece begins with an in-place layer."""
        size = len(layers) // pieces(len(layers))
        starts = [place * size for place in range(pieces(len(layers)))]
        shifted: list[int] = []
        for start in starts:
            while start < len(layers) and getattr(layers[start], "inplace", False):
                start += 1
            if start < len(layers) and (not shifted or start > shifted[-1]):
                shifted.append(start)
        shifted[:1] = [0] if shifted[:1] == [0] else [0, *shifted[:1]]
        for start, end in zip(shifted, shifted[1:]):
            piece = _row(layers[start:end])
            is_first_in_place = getattr(layers[start], "inplace", False)
            if is_first_in_place:
                tensor = piece(tensor)
            else:
                tensor = checkpoint.checkpoint(piece, tensor, use_reentrant=False)
        return _row(layers[shifted[-1] :])(tensor)

    def _contexts(self) -> dict[str, Any]:
        """The context that decides what is kept of a block besides its input."""
        if not self._keeps_matmuls:
            return {}
        checkpoint = self._checkpoint()
        policy = checkpoint.CheckpointPolicy
        expensive = self._expensive()

        def decide(context: Any, operator: Any, *arguments: Any, **options: Any) -> Any:
            return policy.MUST_SAVE if operator in expensive else policy.PREFER_RECOMPUTE

        create = checkpoint.create_selective_checkpoint_contexts
        return {"context_fn": functools.partial(create, decide)}

    def _expensive(self) -> set[Any]:
        operators = self.torch.ops.aten
        names = (
            *("mm", "addmm", "bmm", "baddbmm", "convolution"),
            *("_scaled_dot_product_flash_attention", "_scaled_dot_product_cudnn_attention"),
            "_scaled_dot_product_efficient_attention",
        )
        return {getattr(operators, name).default for name in names if hasattr(operators, name)}

    def _note_statistics(self, module: Any) -> None:
        # Dropout repeats its random numbers, but running averages would be updated twice.
        averaging = self.torch.nn.modules.batchnorm._NormBase
        for part in module.modules():
            if isinstance(part, averaging) and part.running_mean is not None:
                self._averaging.add(part)
                if part.training:
                    self._statistics.add(type(part).__name__)

    def did(self) -> str | None:
        if self._asked:
            return f"gradient_checkpointing_enable() of {', '.join(self._asked[:3])}"
        if not self._names:
            return None
        if self._longest_row:
            return f"{counted(self._names, 'row', 'rows')} of layers run in pieces"
        return f"{counted(self._names, 'module', 'modules')} checkpointed"

    def other_results(self) -> str | None:
        if not self._statistics:
            return None
        named = " and ".join(sorted(self._statistics))
        return f"{named} inside them updates its running statistics twice in every step"

    def nothing_because(self) -> str:
        return "no model in train() has repeated blocks, or a row of layers, to compute again"

    def line(self) -> str | None:
        if self._asked:
            return "model.gradient_checkpointing_enable(); model.config.use_cache = False"
        if self._longest_row:
            count = pieces(self._longest_row)
            return (
                f"torch.utils.checkpoint.checkpoint_sequential(layers, {count}, x, "
                "use_reentrant=False)"
            )
        named = " and ".join(sorted(self._names))
        return (
            "x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)   "
            f"# where each {named} is called"
        )


def switch_off_cache(model: Any) -> None:
    """Blocks that run twice would fill a key-value cache twice."""
    for module in model.modules():
        config = getattr(module, "config", None)
        if config is not None and getattr(config, "use_cache", False):
            config.use_cache = False


def _without_statistics(make: Callable[..., Any], module: Any, arguments: Any, options: Any) -> Any:
    """The same output and saved tensors, without updating the running averages again."""
    momentum, batches = module.momentum, module.num_batches_tracked
    module.momentum, module.num_batches_tracked = 0.0, None
    try:
        return make(*arguments, **options)
    finally:
        module.momentum, module.num_batches_tracked = momentum, batches


def _row(layers: list[Any]) -> Callable[[Any], Any]:
    def run(tensor: Any) -> Any:
        for layer in layers:
            tensor = layer(tensor)
        return tensor

    return run


def _is_called_by(file: str) -> bool:
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == file:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def named_blocks(model: Any, wanted: str) -> tuple[list[Any], list[str]]:
    """Modules whose path or class is among the names, none inside another; names without any."""
    patterns = [each.strip() for each in wanted.split(",") if each.strip()]
    missing = set(patterns)
    found: list[Any] = []
    inner: set[int] = set()
    for path, module in model.named_modules():
        names = (path, type(module).__name__)
        fitting = {one for one in patterns if any(fnmatch.fnmatchcase(it, one) for it in names)}
        missing -= fitting
        if path and fitting and id(module) not in inner:
            found.append(module)
            inner.update(id(part) for part in module.modules())
    return found, [one for one in patterns if one in missing]


def no_such_block(model: Any, missing: list[str]) -> tuple[str, str]:
    """The reason for a refusal of names that no module has, and an alternative."""
    places = [name for name, _ in model.named_children()]
    return (
        f"{type(model).__name__} has no module called {' or '.join(missing)}",
        f"names are places in the model or classes; it has {', '.join(places[:8])}",
    )


def spread(blocks: list[Any], count: int) -> list[Any]:
    """`count` of the blocks, evenly spread."""
    if count >= len(blocks):
        return blocks
    return [blocks[place * len(blocks) // count] for place in range(count)]


def pieces(layers: int) -> int:
    """Into how many pieces a row is cut: memory holds their ends and the inside of one."""
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
