"""What autograd has saved for the backward pass: read from the graph, without unpacking anything.

A node exposes what it saved as attributes (`_raw_saved_self`). Since torch 2.9 such a `SavedTensor`
shows its contents. Before that it can only be unpacked, which runs hooks, and those of activation
checkpointing would recompute the forward pass. With an older torch, graphs are therefore not read
once the script has used such hooks; saved memory is then recognised by its lifetime: allocated in
the forward pass, freed in the backward pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .modules import address_of

_RAW = "_raw_saved_"


class SavedTensors:
    """Finds the storages that autograd graphs keep."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._shows_contents = hasattr(torch._C._autograd.SavedTensor, "data")
        self._has_met_hooks = False
        # Names of the saved tensors of each type of node.
        self._attributes: dict[type, tuple[str, ...]] = {}

    def install(self) -> None:
        """Detect the use of saved-tensor hooks, for torch versions where it matters."""
        if self._shows_contents:
            return
        hooks = self._torch.autograd.graph.saved_tensors_hooks
        original = hooks.__enter__

        def enter(manager: Any) -> Any:
            self._has_met_hooks = True
            return original(manager)

        hooks.__enter__ = enter

    def of(self, tensors: Iterable[Any]) -> Iterator[int]:
        """The addresses of everything that the autograd graphs behind these tensors keep."""
        if self._has_met_hooks:
            return
        waiting = [tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None]
        seen: set[Any] = set(waiting)
        while waiting:
            node = waiting.pop()
            for saved in self._saved_by(node):
                if isinstance(saved, self._torch.Tensor):
                    yield address_of(saved)
            for follower, _ in node.next_functions:
                if follower is not None and follower not in seen:
                    seen.add(follower)
                    waiting.append(follower)

    def _saved_by(self, node: Any) -> Iterator[Any]:
        kind = type(node)
        names = self._attributes.get(kind)
        if names is None:
            names = tuple(name for name in dir(node) if name.startswith(_RAW))
            if not self._shows_contents:
                names = tuple(name.replace(_RAW, "_saved_", 1) for name in names)
            self._attributes[kind] = names
        for name in names:
            try:
                saved = getattr(node, name)
            except RuntimeError:
                return  # the backward pass has already freed it
            for each in saved if isinstance(saved, (tuple, list)) else (saved,):
                if not self._shows_contents:
                    yield each
                    continue
                try:
                    yield each.data
                except (AttributeError, RuntimeError):
                    continue
