"""Keeps large activations in host memory until backward.

Each tensor above a size that autograd saves is copied to pinned memory on a separate stream while
the card continues computing, and is copied back when backward needs it. At most a few copies are in
flight; then computing waits for the oldest. So a tensor's memory becomes free at the same point of
the program in every run, however fast the copies are.

Saves: saved tensors from the threshold on, apart from parameters.
Costs: copies over PCIe, hidden where computing takes longer; pinned host memory of the same size.
Numbers: identical.
Conflicts: none.
"""

from __future__ import annotations

import collections
import contextlib
import weakref
from collections.abc import Iterator, Mapping
from typing import Any, Callable

from .catalogue import bytes_of
from .hooks import Hooks
from .trick import Trick

_UNDER_WAY = 2
"""How many copies may be in flight: one that runs, and one that waits for it."""


class OnHost:
    """Keeps saved tensors on the host; a tensor that several operations save is copied once."""

    def __init__(self, torch: Any, threshold: int) -> None:
        self._torch = torch
        self._threshold = threshold
        self._streams: dict[int, Any] = {}
        self._under_way: collections.deque[tuple[Any, _Copy]] = collections.deque()
        """The tensors that are being copied, whose memory must not be reused yet."""
        self._copies: weakref.WeakValueDictionary[Any, _Copy] = weakref.WeakValueDictionary()
        self.tensors = 0
        self.bytes = 0

    @contextlib.contextmanager
    def keeping(self, model: Any) -> Iterator[None]:
        """A context in which saved tensors go to the host, except the parameters of `model`."""
        stays = {each.untyped_storage().data_ptr() for each in model.parameters()}

        def pack(tensor: Any) -> Any:
            size = tensor.numel() * tensor.element_size()
            is_plain = tensor.layout == self._torch.strided and not tensor.is_nested
            if not tensor.is_cuda or size < self._threshold or not is_plain:
                return tensor
            if tensor.untyped_storage().data_ptr() in stays:
                return tensor
            return self._to_host(tensor, size)

        def unpack(kept: Any) -> Any:
            return self._to_card(kept) if isinstance(kept, _Copy) else kept

        try:
            with self._torch.autograd.graph.saved_tensors_hooks(pack, unpack):
                yield
        finally:
            self._let_go(0)

    def _to_host(self, tensor: Any, size: int) -> _Copy:
        # Two operations may save the same tensor: it is copied once.
        key = (tensor.data_ptr(), tensor._version, tensor.shape, tensor.stride(), tensor.dtype)
        known = self._copies.get(key)
        if known is not None and known.source() is not None:
            return known
        torch = self._torch
        card = tensor.get_device()
        if card not in self._streams:
            self._streams[card] = torch.cuda.Stream(card)
        stream = self._streams[card]
        host = (
            torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, pin_memory=True)
            if _is_dense(tensor)
            else torch.empty(tensor.size(), dtype=tensor.dtype, pin_memory=True)
        )
        stream.wait_stream(torch.cuda.current_stream(card))
        with torch.cuda.stream(stream):
            host.copy_(tensor.detach(), non_blocking=True)
        copied = _Copy(host, card, stream.record_event(), weakref.ref(tensor))
        self._copies[key] = copied
        self._under_way.append((tensor.detach(), copied))
        self._let_go(_UNDER_WAY)
        self.tensors += 1
        self.bytes += size
        return copied

    def _let_go(self, left: int) -> None:
        """Make the card wait for the oldest copies, so that their tensors' memory can be reused.

        With `record_stream`, the allocator would check whether a copy is done, and the peak would
        depend on the speed of the bus.
        """
        while len(self._under_way) > left:
            _, copied = self._under_way.popleft()
            self._torch.cuda.current_stream(copied.card).wait_event(copied.is_copied)

    def _to_card(self, kept: _Copy) -> Any:
        torch = self._torch
        torch.cuda.current_stream(kept.card).wait_event(kept.is_copied)
        return kept.host.to(f"cuda:{kept.card}", non_blocking=True)


class _Copy:
    def __init__(self, host: Any, card: int, is_copied: Any, source: Any) -> None:
        self.host = host
        self.card = card
        self.is_copied = is_copied
        self.source = source


def _is_dense(tensor: Any) -> bool:
    """Whether its strides cover its elements without holes or repetition."""
    extent = 1 + sum((size - 1) * step for size, step in zip(tensor.size(), tensor.stride()))
    return bool(extent == tensor.numel())


class OffloadActivations(Trick):
    """Keeps what models save for backward on the host."""

    name = "offload-activations"

    def __init__(self, torch: Any, hooks: Hooks, options: Mapping[str, str]) -> None:
        super().__init__(torch, hooks, options)
        threshold = bytes_of(options["threshold"])
        assert threshold is not None, "the catalogue has checked it"
        self._host = OnHost(torch, threshold)

    def install(self) -> None:
        self.hooks.around_models.append(self._call)

    def _call(self, make: Callable[..., Any], module: Any, arguments: Any, options: Any) -> Any:
        if not self.torch.is_grad_enabled():
            return make(*arguments, **options)
        with self._host.keeping(module):
            return make(*arguments, **options)

    def did(self) -> str | None:
        if not self._host.tensors:
            return None
        return f"{self._host.tensors} saved tensors, {self._host.bytes:,} bytes, kept on the host"
