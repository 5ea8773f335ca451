"""What memory is used for: parameters, gradients, optimizer state, saved tensors, inputs."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any

from .. import shared_numbers
from .keepers import kept_by_variables
from .memory_log import MemoryLog
from .modules import Modules, address_of
from .saved_tensors import SavedTensors

MAX_DEPTH = 4
"""How deep tensors are looked for in a model's arguments."""


class Owners:
    """Logs what the memory at an address is used for."""

    def __init__(self, torch: Any, log: MemoryLog, modules: Modules) -> None:
        self._torch = torch
        self._log = log
        self._modules = modules
        self._saved = SavedTensors(torch)
        # Models whose parameters were noted in this step.
        self._noted: set[int] = set()
        self._parameter_names: dict[int, str] = {}

    def install(self) -> None:
        """Prepare for reading autograd graphs."""
        self._saved.install()

    def begin_step(self) -> None:
        """Look at every model again: an optimizer step may have replaced tensors."""
        self._noted.clear()

    def note_model(self, root: Any) -> None:
        """Log a model's parameters and buffers, once per step."""
        if id(root) in self._noted:
            return
        self._noted.add(id(root))
        parameters = self._modules.name_parameters(root)
        self._parameter_names.update(parameters)
        self._log.note_owners(shared_numbers.PARAMETER, parameters)
        self._log.note_owners(shared_numbers.BUFFER, self._modules.name_buffers(root))

    def note_inputs(self, arguments: Any, options: Any) -> None:
        """Log tensors that the script passes to a model and that no model computed."""
        named = [(f"argument {place}", each) for place, each in enumerate(arguments, 1)]
        named += options.items()
        owners = [
            (address_of(tensor), name)
            for name, value in named
            for tensor in self.tensors_in(value)
            if tensor.grad_fn is None and not tensor.requires_grad
        ]
        self._log.note_owners(shared_numbers.INPUT, owners)

    def note_sent(self, tensor: Any) -> None:
        """Log a tensor that was copied from the host."""
        self._log.note_owners(shared_numbers.INPUT, [(address_of(tensor), "from the host")])

    def note_saved(self, tensors: Iterable[Any]) -> None:
        """Log what the autograd graphs behind these tensors keep."""
        addresses = dict.fromkeys(self._saved.of(tensors))
        self._log.note_owners(
            shared_numbers.SAVED_FOR_BACKWARD, ((address, "") for address in addresses)
        )

    def note_gradients(self, optimizers: Iterable[Any] = ()) -> None:
        """Log the gradients of all known parameters."""
        owners: dict[int, str] = {}
        for root in list(self._modules.roots):
            for parameter in root.parameters():
                self._add_gradient(parameter, owners)
        for optimizer in optimizers:
            for parameter in _parameters_of(optimizer):
                self._add_gradient(parameter, owners)
        self._log.note_owners(shared_numbers.GRADIENT, owners.items())

    def _add_gradient(self, parameter: Any, owners: dict[int, str]) -> None:
        gradient = parameter.grad
        if gradient is not None and gradient.is_cuda and not gradient.is_sparse:
            name = self._parameter_names.get(address_of(parameter), "")
            owners[address_of(gradient)] = name

    def note_optimizer(self, optimizer: Any) -> None:
        """Log an optimizer's parameters and their state."""
        unknown = []
        for place, parameter in enumerate(_parameters_of(optimizer)):
            address = address_of(parameter)
            if address and address not in self._parameter_names:
                name = f"{type(optimizer).__name__} parameter {place}"
                self._parameter_names[address] = name
                unknown.append((address, name))
        self._log.note_owners(shared_numbers.PARAMETER, unknown)
        owners = []
        for parameter, state in optimizer.state.items():
            is_tensor = isinstance(parameter, self._torch.Tensor)
            name = self._parameter_names.get(address_of(parameter), "") if is_tensor else ""
            entries = state.items() if isinstance(state, dict) else [("state", state)]
            for key, value in entries:
                full_name = f"{name}.{key}" if name else str(key)
                owners += [(address_of(tensor), full_name) for tensor in self.tensors_in(value)]
        self._log.note_owners(shared_numbers.OPTIMIZER_STATE, owners)

    def note_keepers(self, frame: FrameType | None) -> None:
        """Log what the script's variables keep: tensors, and the memory of their graphs."""
        for words, tensors in kept_by_variables(self._torch, frame):
            addresses = [address_of(tensor) for tensor in tensors]
            addresses += self._saved.of(tensors)
            owners = ((address, words) for address in dict.fromkeys(addresses))
            self._log.note_owners(shared_numbers.KEPT_IN, owners)

    def note_everything(self, optimizers: Iterable[Any]) -> None:
        """Log everything that can be found: memory has run out, and nothing more may follow."""
        optimizers = list(optimizers)
        for root in list(self._modules.roots):
            self._noted.discard(id(root))
            self.note_model(root)
        self.note_gradients(optimizers)
        for optimizer in optimizers:
            self.note_optimizer(optimizer)
        tensor_type = self._torch.Tensor
        # Not `isinstance`, which asks objects for `__class__`: some proxies answer with a warning.
        self.note_saved([each for each in gc.get_objects() if issubclass(type(each), tensor_type)])

    def tensors_in(self, value: Any) -> Iterator[Any]:
        """The tensors in a value, also in nested lists and dictionaries."""
        return self._tensors(value, MAX_DEPTH)

    def _tensors(self, value: Any, depth: int) -> Iterator[Any]:
        if isinstance(value, self._torch.Tensor):
            yield value
        elif depth and isinstance(value, (list, tuple, set)):
            for each in value:
                yield from self._tensors(each, depth - 1)
        elif depth and isinstance(value, dict):
            for each in value.values():
                yield from self._tensors(each, depth - 1)


def _parameters_of(optimizer: Any) -> Iterator[Any]:
    for group in optimizer.param_groups:
        yield from group["params"]
