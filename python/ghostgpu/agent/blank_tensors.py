"""Blank tensors: large CPU tensors whose pages were never written and therefore cost no memory.

Fresh memory from the operating system reads as zeros and takes no room until it is written. A
weight whose initialisation is skipped stays in that state, and so may a copy of it in another
dtype: zero converts to zero. So converting a blank tensor means making another blank one, and
copying the few pages that were written after all (the padding row of an embedding).

Which pages were written is asked of the kernel (`/proc/self/pagemap`), never guessed: a tensor that
has been filled behind our back, say from a checkpoint through `.data`, is converted like any other.
"""

from __future__ import annotations

import os
import re
from typing import Any

from .guard import quietly
from .kernels import put_in_front

MIN_BYTES = 1 << 20
"""For smaller tensors, asking the kernel is not worth it."""

MAX_WRITTEN_SHARE = 0.02
"""A tensor with more of its pages written than this is not blank."""

_PAGE = os.sysconf("SC_PAGE_SIZE")
_WRITTEN = re.compile(rb"[\x40-\xff]+")
"""Runs of written pages, looking at the highest byte of each page's entry: its upper two bits say
that the page is in memory or in swap."""


class BlankTensors:
    """Tracks the blank storages of this process and keeps conversions from filling them."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        # By address of the storage object. The weak reference keeps that address from being reused.
        self._storages: dict[int, Any] = {}
        self._are_kernels_in_place = False

    def is_unwritten(self, tensor: Any) -> bool:
        """Whether (nearly) none of a plain, dense CPU tensor's memory was ever written."""
        return tensor.is_contiguous() and _is_unwritten(tensor, _written_ranges(tensor))

    def add(self, tensor: Any) -> None:
        """Remember a tensor, found unwritten, as blank."""
        from torch.multiprocessing.reductions import StorageWeakRef

        storage = tensor.untyped_storage()
        self._storages[storage._cdata] = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
        if not self._are_kernels_in_place:
            self._are_kernels_in_place = True
            quietly(self._put_kernels_in_place)()

    def _is_known(self, tensor: Any) -> bool:
        torch = self._torch
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
            return False
        address = tensor.untyped_storage()._cdata
        reference = self._storages.get(address)
        if reference is None:
            return False
        if reference.expired():
            del self._storages[address]
            return False
        return True

    def copy_if_blank(self, tensor: Any, dtype: Any) -> Any:
        """A blank copy of a blank tensor in another dtype; None if that is not possible."""
        if not self._is_known(tensor) or not tensor.is_contiguous():
            return None
        ranges = _written_ranges(tensor)
        if ranges is None or not _is_unwritten(tensor, ranges):
            return None
        copy = self._torch.empty_like(tensor, dtype=dtype, requires_grad=False)
        # Memory that the process used before is not blank; then the copy is made the usual way.
        if not self.is_unwritten(copy):
            return None
        source, target = tensor.detach().view(-1), copy.view(-1)
        for begin, stop in ranges:
            target[begin:stop] = source[begin:stop]
        self.add(copy)
        return copy

    def _put_kernels_in_place(self) -> None:
        """Wrap CPU conversions. Done only once a blank tensor exists: wrappers cost time."""
        put_in_front(self._torch, "_to_copy", "CPU", self._to_copy)
        put_in_front(self._torch, "clone", "CPU", self._clone)
        self._wrap_storage_clone()

    def _to_copy(self, original: Any, tensor: Any, **options: Any) -> Any:
        dtype = options.get("dtype") or tensor.dtype
        device = options.get("device")
        stays = device is None or self._torch.device(device).type == "cpu"
        if _is_plain(options) and (stays or dtype != tensor.dtype) and self._is_large(tensor):
            converted = self._quiet_copy(tensor, dtype)
            if converted is not None:
                return converted if stays else original(converted, **options)
        return original(tensor, **options)

    def _clone(self, original: Any, tensor: Any, **options: Any) -> Any:
        if _is_plain(options) and self._is_large(tensor):
            copy = self._quiet_copy(tensor, tensor.dtype)
            if copy is not None:
                return copy
        return original(tensor, **options)

    def _is_large(self, tensor: Any) -> bool:
        return bool(tensor.numel() * tensor.element_size() >= MIN_BYTES)

    def _quiet_copy(self, tensor: Any, dtype: Any) -> Any:
        return quietly(self.copy_if_blank)(tensor, dtype)

    def _wrap_storage_clone(self) -> None:
        """`copy.deepcopy` of a model copies storages, not tensors."""
        storage_type = self._torch.UntypedStorage
        original = storage_type.clone

        def clone(storage: Any) -> Any:
            if storage._cdata in self._storages:
                whole = self._torch.empty(0, dtype=self._torch.uint8, device="cpu").set_(storage)
                copy = self._quiet_copy(whole, self._torch.uint8)
                if copy is not None:
                    return copy.untyped_storage()
            return original(storage)

        clone.__doc__ = original.__doc__
        storage_type.clone = clone


def _is_plain(options: dict[str, Any]) -> bool:
    """Whether a copy asks for nothing but a dtype and a device."""
    memory_format = options.get("memory_format")
    return not options.get("pin_memory") and (
        memory_format is None or str(memory_format) == "torch.preserve_format"
    )


def _is_unwritten(tensor: Any, ranges: list[tuple[int, int]] | None) -> bool:
    if ranges is None:
        return False
    written = sum(stop - begin for begin, stop in ranges)
    two_pages = 2 * _PAGE // tensor.element_size()
    return bool(written <= max(MAX_WRITTEN_SHARE * tensor.numel(), two_pages))


def _written_ranges(tensor: Any) -> list[tuple[int, int]] | None:
    """The parts of a contiguous tensor that were ever written, as ranges of elements.

    None when the system does not say.
    """
    start, size, count = tensor.data_ptr(), tensor.element_size(), tensor.numel()
    first = start // _PAGE
    end = -(-(start + count * size) // _PAGE)
    entries = bytearray((end - first) * 8)
    try:
        with open("/proc/self/pagemap", "rb", buffering=0) as pagemap:
            pagemap.seek(first * 8)
            if pagemap.readinto(entries) != len(entries):
                return None
    except OSError:
        return None
    ranges = []
    for run in _WRITTEN.finditer(entries[7::8]):
        begin = max((first + run.start()) * _PAGE - start, 0) // size
        # Rounded up: an element may lie across the edge of a page.
        stop = min(-(-((first + run.end()) * _PAGE - start) // size), count)
        ranges.append((begin, stop))
    return ranges
