"""Values on the card that are known because they follow from data on the host.

The card holds no values, but a script sends some there: token ids, masks, lengths. It makes others
with `torch.eye` or `torch.arange`, and computes with both. For every storage on the card whose
content follows from these, this module knows how to compute it (`host_values`) and returns the true
value, or the true size of a result, when the script asks.

What is known of a storage is valid until something else writes to it, which PyTorch counts in every
tensor's version. All views of a storage share what is known of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

from .host_values import (
    MAX_DEPTH,
    SMALL_BYTES,
    Blank,
    Call,
    Content,
    Geometry,
    Host,
    NotKnown,
    Shown,
)

MAX_BYTES = 64 << 20
"""Larger tensors are not followed."""

MAX_FLOAT_BYTES = 16 << 20
"""The same for floating-point tensors, which are mostly activations and weights."""

MAX_PICKLE_BYTES = 1 << 30
"""The same for lists of bytes: those are pickles, which ranks send to each other. Only what is read
of them is ever copied."""

HELD_BYTES = 256 << 20
"""Host memory for contents that are kept once computed; the oldest are forgotten first."""


@dataclass
class _Entry:
    """What is known of a storage, and the version of the storage for which that is true."""

    storage: Any
    version: int
    content: Content | None
    guess: Any
    """If the content is not known: what every element is assumed to be, or None."""
    is_sure: bool
    """Whether the guess holds whatever ordinary numbers it was computed from."""
    is_mask: bool
    """Whether it is a mask, possibly converted to numbers, so that its sum is a count."""
    is_unset: bool
    """Whether nothing has been written yet, so that any bytes will do."""


class KnownValues:
    """Remembers what storages on the card hold."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self.host = Host(torch)
        self.kinds = frozenset(
            (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
        )
        """Dtypes of integers and truth values."""
        floats = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
        self.held = self.kinds.union(floats, (torch.complex64, torch.complex128))
        # By address of the storage object. The weak reference keeps that address from being reused.
        self._entries: dict[int, _Entry] = {}
        self._next_purge = 1024
        self.on_draw: Callable[[], object] = lambda: None
        """Called when values that depend on random numbers are read."""

    def of(self, tensor: Any) -> Any:
        """The values of a tensor on the card, as a CPU tensor; None if they are not known."""
        content = self.content_of(tensor)
        if content is None:
            return None
        values = self.attempt(self._view, content, tensor)
        if values is not None and content.draws:
            self.on_draw()
        return values

    def _view(self, content: Content, tensor: Any) -> Any:
        # A content that was computed stays known even when time has run out: a mask must not select
        # another number of elements on the next use.
        with self.host.working(is_over_soon=content.is_made):
            return Geometry.of(tensor).view(content.bytes())

    def content_of(self, tensor: Any) -> Content | None:
        """The content of a tensor's storage; None if it is not known."""
        entry = self._entry(tensor)
        return None if entry is None else entry.content

    def guess_of(self, tensor: Any) -> Any:
        """What every element of a tensor is assumed to be; None if there is no guess."""
        entry = self._entry(tensor)
        return None if entry is None else entry.guess

    def sure_guess_of(self, tensor: Any) -> Any:
        """The guess for every element if it holds whatever it was computed from; else None."""
        entry = self._entry(tensor)
        return entry.guess if entry is not None and entry.is_sure else None

    def is_mask(self, tensor: Any) -> bool:
        """Whether a tensor is a mask, or one that was converted to numbers."""
        if tensor.dtype is self._torch.bool:
            return True
        entry = self._entry(tensor)
        return entry is not None and entry.is_mask

    def is_unset(self, tensor: Any) -> bool:
        """Whether nothing was written to a tensor's storage since it was made."""
        entry = self._entry(tensor)
        return entry is not None and entry.is_unset

    def has_entry(self, tensor: Any) -> bool:
        """Whether anything is known or guessed about a tensor's storage."""
        return self._entry(tensor) is not None

    def _entry(self, tensor: Any) -> _Entry | None:
        if not self._entries:
            return None
        entry = self._entries.get(tensor.untyped_storage()._cdata)
        if entry is None or entry.version != _version(tensor) or entry.storage.expired():
            return None
        return entry

    def can_hold(self, tensor: Any) -> bool:
        """Whether a dense tensor has a dtype and a size whose values are followed."""
        return tensor.dtype in self.held and 0 < tensor.nbytes <= self._most_bytes(tensor)

    def is_pickle(self, tensor: Any) -> bool:
        """Whether a tensor may be the pickle of an object, which must arrive as a whole."""
        return bool(tensor.dtype == self._torch.uint8 and tensor.dim() == 1)

    def _most_bytes(self, tensor: Any) -> int:
        if self.is_pickle(tensor):
            return MAX_PICKLE_BYTES
        return MAX_BYTES if tensor.dtype in self.kinds else MAX_FLOAT_BYTES

    def argument(self, value: Any) -> Any:
        """An argument of a call in a form that can be kept; raises `NotKnown` if it has none."""
        kind = type(value)
        if kind in (list, tuple):
            return kind(self.argument(each) for each in value)
        if kind is slice:
            return slice(*(self.argument(each) for each in (value.start, value.stop, value.step)))
        if isinstance(value, self._torch.Tensor):
            shown = self.shown(value)
            if shown is None:
                raise NotKnown
            return shown
        if kind is self._torch.device:
            return self._torch.device("cpu")
        if kind is self._torch.Generator:
            return None
        return value

    def options(self, options: dict[str, Any]) -> dict[str, Any]:
        """Keyword arguments of a call in a form that can be kept."""
        if not options:
            return options
        kept = {name: self.argument(value) for name, value in options.items()}
        if kept.get("device") is not None:
            kept["device"] = "cpu"
        for name in ("pin_memory", "generator", "non_blocking"):
            kept.pop(name, None)
        return kept

    def blank(self, tensor: Any) -> Blank:
        """An argument of which only shape and dtype matter."""
        return Blank(tensor.dtype, tuple(tensor.size()))

    def shown(self, tensor: Any) -> Shown | None:
        """What a tensor on the card or on the host shows now; None if it is not known."""
        if not tensor.is_cuda:
            return self._shown_on_host(tensor)
        content = self.content_of(tensor)
        return None if content is None else Shown(content, Geometry.of(tensor))

    def _shown_on_host(self, tensor: Any) -> Shown | None:
        storage = tensor.untyped_storage()
        size_bytes = storage.nbytes()
        if tensor.device.type != "cpu" or tensor.dtype not in self.held or not size_bytes:
            return None
        if type(tensor) is not self._torch.Tensor or tensor.requires_grad:
            return None
        is_large_pickle = tensor.nbytes > MAX_BYTES and self.is_pickle(tensor)
        is_uncounted = tensor.nbytes <= SMALL_BYTES or not storage.resizable()
        if size_bytes > SMALL_BYTES and is_uncounted and not is_large_pickle:
            # PyTorch does not count writes to memory of numpy or of another process, such as a
            # loader's worker, so that is copied at once. Only the part that is shown: a batch may
            # be a slice of a whole dataset.
            return self._copied(tensor) if self.can_hold(tensor) else None
        if size_bytes > max(MAX_BYTES, self._most_bytes(tensor)):
            return None
        whole = self._torch.empty(0, dtype=self._torch.uint8, device="cpu").set_(storage)
        if size_bytes <= SMALL_BYTES:
            return Shown(self._copied(whole).content, Geometry.of(tensor))
        version = _version(tensor)

        def make() -> Any:
            if _version(tensor) != version:
                raise NotKnown
            copy = self.host.blank(size_bytes)
            copy.copy_(whole)
            return copy

        return Shown(Content(self.host, size_bytes, make), Geometry.of(tensor))

    def _copied(self, tensor: Any) -> Shown:
        """A copy of a CPU tensor, without what else its storage holds."""
        copy = self.host.blank(tensor.nbytes)
        part = copy.view(tensor.dtype).view(tensor.size())
        part.copy_(tensor)
        content = Content(self.host, tensor.nbytes, lambda: copy, is_copy=True)
        content.bytes()
        return Shown(content, Geometry.of(part))

    def made(self, results: Any, call: Call) -> None:
        """`results` were just made on the card by this call."""
        if isinstance(results, self._torch.Tensor):
            self._note_results({None: results}, call)
            return
        # Several results may share one storage: each is a part of its content.
        by_storage: dict[int, dict[int | None, Any]] = {}
        for place, result in enumerate(results):
            if isinstance(result, self._torch.Tensor):
                key = result.untyped_storage()._cdata
                by_storage.setdefault(key, {})[place] = result
        for parts in by_storage.values():
            self._note_results(parts, call)

    def _note_results(self, parts: dict[int | None, Any], call: Call) -> None:
        """Note results that share one storage, by their index among all results."""
        result = next(iter(parts.values()))
        # A result that is a view of a known storage is already known.
        if not all(map(self.can_hold, parts.values())) or self._entry(result) is not None:
            return
        # The storage may be larger: kernels that learn a result's length late allocate the maximum.
        size_bytes = result.untyped_storage().nbytes()
        if size_bytes <= max(MAX_BYTES, self._most_bytes(result)):
            geometries = {place: Geometry.of(part) for place, part in parts.items()}
            self.keep(result, call.content(geometries, size_bytes))

    def keep(
        self,
        tensor: Any,
        content: Content | None,
        guess: Any = None,
        *,
        is_sure: bool = False,
        is_mask: bool = False,
        is_unset: bool = False,
    ) -> None:
        """Remember what the storage of `tensor` holds from now on."""
        from torch.multiprocessing.reductions import StorageWeakRef

        if content is not None and content.depth > MAX_DEPTH:
            if content.size_bytes > SMALL_BYTES:
                content = None
            else:
                self.attempt(content.bytes)
        storage = tensor.untyped_storage()
        key = storage._cdata
        # The newest last: the oldest are forgotten first.
        self._entries.pop(key, None)
        reference = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
        version = _version(tensor)
        self._entries[key] = _Entry(
            *(reference, version, content, guess, is_sure, is_mask, is_unset)
        )
        if len(self._entries) >= self._next_purge or self.host.held_bytes > HELD_BYTES:
            self._purge()

    def forget(self, tensor: Any) -> None:
        """`tensor` was overwritten with unknown values."""
        if self._entries:
            try:
                key = tensor.untyped_storage()._cdata
            except NotImplementedError:
                return  # tensors inside `torch.func` transforms have no storage
            self._entries.pop(key, None)

    def learn(self, tensor: Any, values: Any) -> None:
        """Remember the values of `tensor`, which was just made on the card."""
        if self.can_hold(tensor):
            self.made(tensor, Call(self.host, lambda: values, (), {}))

    def overwrite(self, tensor: Any, values: Any) -> None:
        """`tensor` was written behind PyTorch's back; `values` is None if they are not known."""
        before = self.content_of(tensor)
        self.forget(tensor)
        if values is None or not self.can_hold(tensor):
            return
        size_bytes = tensor.untyped_storage().nbytes()
        # A content describes a whole storage, so a part of an unknown one cannot be kept.
        if before is not None or tensor.nbytes == size_bytes:
            source = values.clone()

            def write(target: Any) -> None:
                target.copy_(source.reshape(target.shape))

            call = Call(self.host, write, (), {})
            self.keep(tensor, call.written(before, Geometry.of(tensor), size_bytes))

    def _purge(self) -> None:
        living = {key: it for key, it in self._entries.items() if not it.storage.expired()}
        self._entries = living
        for key in list(living):
            if self.host.held_bytes <= HELD_BYTES // 2:
                break
            content = living[key].content
            if content is not None and content.is_made:
                del living[key], content
        self._next_purge = 2 * len(living) + 1024

    def attempt(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call `function`; None if that fails on the host (an odd overload, a lazy tensor)."""
        try:
            return function(*arguments)
        except Exception:
            return None


def _version(tensor: Any) -> int:
    # Inference tensors have no version; the agent's wrappers see writes made from Python.
    return 0 if tensor.is_inference() else int(tensor._version)
