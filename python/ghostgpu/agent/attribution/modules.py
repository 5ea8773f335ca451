"""Which module runs: wraps the call of every `torch.nn.Module`.

Modules are named by their paths in their model when that model is first called. The number of the
running module is written into a cell of the calling thread, where the stand-in library reads it
at each allocation.
"""

from __future__ import annotations

import functools
import itertools
import weakref
from typing import Any, Callable

from ...tricks.module_calls import put_around_calls
from ..guard import quietly
from .memory_log import MemoryLog, ThreadCells


class Modules:
    """Numbers and names of the script's modules."""

    def __init__(self, torch: Any, log: MemoryLog) -> None:
        self._torch = torch
        self._log = log
        self._cells = ThreadCells(log)
        # By the module's address; the weak reference removes the entry with its module.
        self._numbers: dict[int, tuple[Any, int]] = {}
        self._next_number = itertools.count(1)
        # The prefix of the names of each model's parts.
        self._prefixes: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._paths: set[str] = set()
        # The largest output of each module so far.
        self._outputs: dict[int, int] = {}
        self.roots: weakref.WeakSet[Any] = weakref.WeakSet()
        """The modules that the script has called itself."""
        self.before_root: Callable[[Any, Any, Any], None] = lambda module, arguments, options: None
        self.after_root: Callable[[Any, Any], None] = lambda module, result: None

    def install(self) -> None:
        """Wrap `Module.__call__`, through which every module is run."""
        put_around_calls(self._torch, self._watched)

    def _watched(self, original: Callable[..., Any]) -> Callable[..., Any]:
        numbers, cells, log = self._numbers, self._cells, self._log
        tensor_type = self._torch.Tensor
        begin, end = quietly(self._begin_root), quietly(self._end_root)

        def call(module: Any, *arguments: Any, **options: Any) -> Any:
            if not log.is_on:
                return original(module, *arguments, **options)
            cell = cells.cell
            outer = cell.value
            if outer == 0:
                begin(module, arguments, options)
            entry = numbers.get(id(module))
            cell.value = entry[1] if entry is not None else self._number_of_unnamed(module)
            try:
                result = original(module, *arguments, **options)
                if type(result) is tensor_type:
                    self._note_output(cell.value, result)
                if outer == 0:
                    end(module, result)
                return result
            except BaseException:
                if outer == 0:
                    end(module, None)
                raise
            finally:
                cell.value = outer

        return call

    def name_parameters(self, root: Any) -> list[tuple[int, str]]:
        """Addresses and names of a model's parameters on the card."""
        prefix = self._prefix_of(root)
        return [
            (address_of(parameter), prefix + name) for name, parameter in root.named_parameters()
        ]

    def name_buffers(self, root: Any) -> list[tuple[int, str]]:
        """Addresses and names of a model's buffers on the card."""
        prefix = self._prefix_of(root)
        return [(address_of(buffer), prefix + name) for name, buffer in root.named_buffers()]

    def _begin_root(self, module: Any, arguments: Any, options: Any) -> None:
        if id(module) not in self._numbers:
            self._name_model(module)
        self.roots.add(module)
        self.before_root(module, arguments, options)

    def _end_root(self, module: Any, result: Any) -> None:
        self.after_root(module, result)

    def _note_output(self, number: int, result: Any) -> None:
        size = result.nbytes if result.is_cuda else 0
        if size > self._outputs.get(number, 0):
            self._outputs[number] = size
            self._log.note_module_output(number, size)

    def _name_model(self, root: Any) -> None:
        """Give numbers to a model and everything in it.

        The paths of the first model with parts are as `named_modules` has them; those of further
        ones begin with the model's class.
        """
        class_name = type(root).__name__
        has_parts = next(root.children(), None) is not None
        prefix = "" if has_parts and "" not in self._paths else self._unused(class_name)
        self._paths.add(prefix)
        self._prefixes[root] = prefix + "." if prefix else ""
        for path, module in root.named_modules():
            if id(module) not in self._numbers:
                full = ".".join(part for part in (prefix, path) if part) if path else ""
                self._add(module, full or f"[{prefix or class_name}]")

    def _prefix_of(self, root: Any) -> str:
        return self._prefixes.get(root, "")

    def _unused(self, name: str) -> str:
        candidate, count = name, 1
        while candidate in self._paths:
            count += 1
            candidate = f"{name}#{count}"
        return candidate

    def _number_of_unnamed(self, module: Any) -> int:
        """Number a module that was not part of a model when that model was named."""
        return self._add(module, f"[{type(module).__name__}]")

    def _add(self, module: Any, path: str) -> int:
        key = id(module)
        number = next(self._next_number)
        reference = weakref.ref(module, functools.partial(self._forget, key))
        self._numbers[key] = (reference, number)
        self._log.name_module(number, path, type(module).__name__)
        return number

    def _forget(self, key: int, reference: Any) -> None:
        self._numbers.pop(key, None)


def address_of(tensor: Any) -> int:
    """The address of a tensor's storage on the card; 0 if it has none there."""
    if not tensor.is_cuda:
        return 0
    # Of a tensor that is sharded over ranks (`DTensor`), this process holds only its own part.
    tensor = getattr(tensor, "_local_tensor", tensor)
    try:
        return int(tensor.untyped_storage().data_ptr())
    except (RuntimeError, NotImplementedError):
        return 0  # a subclass without storage, a fake tensor
