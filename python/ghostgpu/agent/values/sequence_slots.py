"""Keeps wrapped tensors from looking like sequences to Python's C API.

`torch.Tensor` implements `__getitem__` in C, in the mapping slots only, so `PySequence_Check` says
no. A Python function in its place fills the mapping slots and the sequence slots. Then
`torch.tensor([loss, other_loss])` asks the losses for their lengths, and a binding that takes a
list of tensors takes a single tensor for the list of its rows. So the sequence slots are emptied
again, in every tensor class that does not define its own `__getitem__`.
"""

from __future__ import annotations

import ctypes
from typing import Any

_AS_SEQUENCE = 13 * ctypes.sizeof(ctypes.c_void_p)
"""Offset of `tp_as_sequence` in a `PyTypeObject`, since Python 3.9."""

_ITEM, _ASSIGN_ITEM = (number * ctypes.sizeof(ctypes.c_void_p) for number in (3, 5))
"""Offsets of `sq_item` and `sq_ass_item` in `PySequenceMethods`."""


def keep_from_being_sequences(tensor: Any) -> None:
    """Empty the slots of `torch.Tensor` and all its subclasses, including later ones."""
    if not _is_where_expected():
        return
    item = tensor.__dict__.get("__getitem__")
    if item is None:
        return
    kinds = [tensor]
    while kinds:
        kind = kinds.pop()
        _empty_slots(kind, item)
        # Called on `type`: a metaclass's own `__subclasses__` takes the class as an argument.
        kinds.extend(type.__subclasses__(kind))

    def init_subclass(cls: Any, /, **options: Any) -> None:
        super(tensor, cls).__init_subclass__(**options)
        _empty_slots(cls, item)

    tensor.__init_subclass__ = classmethod(init_subclass)


def _is_where_expected() -> bool:
    """Whether the offsets are right: a list must be a sequence, and an iterator must not."""
    iterator = type(iter(()))
    return bool(_slot(list, _ITEM)) and not (_methods(iterator) and _slot(iterator, _ITEM))


def _empty_slots(kind: Any, item: Any) -> None:
    defining = next(base for base in kind.__mro__ if "__getitem__" in base.__dict__)
    if defining.__dict__["__getitem__"] is not item:
        return  # defines its own: a sequence without the agent too
    methods = _methods(kind)
    for slot in (_ITEM, _ASSIGN_ITEM):
        ctypes.c_void_p.from_address(methods + slot).value = None


def _methods(kind: Any) -> int:
    return ctypes.c_void_p.from_address(id(kind) + _AS_SEQUENCE).value or 0


def _slot(kind: Any, slot: int) -> int | None:
    methods = _methods(kind)
    return ctypes.c_void_p.from_address(methods + slot).value if methods else None
