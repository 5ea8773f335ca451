"""Keeps tensors from being sequences to Python's C interface, which the agent would make them.

`torch.Tensor` has its `__getitem__` from C, as mappings have it, and `PySequence_Check` says no. A
function of Python's in that place fills the slots of a mapping and of a sequence. Then
`torch.tensor([loss, other_loss])` asks the losses for their lengths, and a binding that takes a
list of tensors takes one tensor for the list of its rows. So the slots of a sequence are emptied
again, in every kind of tensor that does not have a `__getitem__` of its own.
"""

from __future__ import annotations

import ctypes
from typing import Any

_AS_SEQUENCE = 13 * ctypes.sizeof(ctypes.c_void_p)
"""Where `tp_as_sequence` is in a `PyTypeObject`, of every Python from 3.9 on."""

_ITEM, _ASSIGN_ITEM = (number * ctypes.sizeof(ctypes.c_void_p) for number in (3, 5))
"""Where `sq_item` and `sq_ass_item` are in `PySequenceMethods`."""


def keep_from_being_sequences(tensor: Any) -> None:
    """Empty the slots of `torch.Tensor` and of all its kinds, those too that are made later."""
    if not _is_where_expected():
        return
    item = tensor.__dict__.get("__getitem__")
    if item is None:
        return
    kinds = [tensor]
    while kinds:
        kind = kinds.pop()
        _empty_slots(kind, item)
        # A metaclass has one that takes the class.
        kinds.extend(type.__subclasses__(kind))

    def init_subclass(cls: Any, /, **options: Any) -> None:
        super(tensor, cls).__init_subclass__(**options)
        _empty_slots(cls, item)

    tensor.__init_subclass__ = classmethod(init_subclass)


def _is_where_expected() -> bool:
    """Whether types look as they are taken to: a list is a sequence, and an iterator is none."""
    iterator = type(iter(()))
    return bool(_slot(list, _ITEM)) and not (_methods(iterator) and _slot(iterator, _ITEM))


def _empty_slots(kind: Any, item: Any) -> None:
    defining = next(base for base in kind.__mro__ if "__getitem__" in base.__dict__)
    if defining.__dict__["__getitem__"] is not item:
        return  # its own: a sequence without us, too
    methods = _methods(kind)
    for slot in (_ITEM, _ASSIGN_ITEM):
        ctypes.c_void_p.from_address(methods + slot).value = None


def _methods(kind: Any) -> int:
    return ctypes.c_void_p.from_address(id(kind) + _AS_SEQUENCE).value or 0


def _slot(kind: Any, slot: int) -> int | None:
    methods = _methods(kind)
    return ctypes.c_void_p.from_address(methods + slot).value if methods else None
