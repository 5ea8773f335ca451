"""Values on the card that are known after all, because they came from the host.

The card holds no values, but a script sends some there: token numbers, attention masks, lengths.
For small integer and boolean tensors this module keeps a copy on the host, follows it through the
few operations that models apply before they branch (`mask.to(torch.bool)[:, :n].all()`), and
answers with the true value when one is read. The models of `transformers` choose their attention by
such a branch, and with it a good part of their memory. Floating-point constants are remembered,
too, because some masks are made of ones; what is computed from them is followed where it is not a
float, or where it is a few of them: relative positions are counted in floats, and lengths of
tensors follow from them.

A copy belongs to a storage and is good as long as nobody wrote to it: PyTorch counts that in the
version of every tensor. All views of a storage share its copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

from .guard import install
from .kernels import put_in_front

MAX_BYTES = 1 << 20
"""Larger tensors are not followed."""

FEW_BYTES = 16 << 10
"""Results of floating-point numbers are followed up to this size: activations are larger."""

_FOLLOWED = (
    *(
        f"{name}.{kind}"
        for name in ("eq", "ne", "lt", "le", "gt", "ge")
        for kind in ("Scalar", "Tensor")
    ),
    *("all", "all.dim", "any", "any.dim", "logical_not", "logical_and", "logical_or"),
    *("bitwise_not", "bitwise_and.Tensor", "bitwise_or.Tensor"),
    *("max", "min", "amax", "amin", "cumsum"),
)
"""Operations whose result is known when all their tensors are.

A Python function in front of a kernel costs several microseconds a call, for any dtype. Operations
that a training step runs many times on floating-point tensors (sums, copies) are followed where
Python calls them instead: see `known_arithmetic` and `known_copies`.
"""


@dataclass
class _Copy:
    """The bytes of a storage on the card, and the state of the storage that they belong to."""

    storage: Any
    version: int
    content: Any


class KnownValues:
    """Remembers what the script sent to the card."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        # The types of numbers that are followed.
        self.kinds = frozenset(
            (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
        )
        self.held = self.kinds | {torch.float16, torch.bfloat16, torch.float32, torch.float64}
        # By address of the storage object. The weak reference keeps that address from being reused.
        self._copies: dict[int, _Copy] = {}
        self._next_purge = 256

    def install(self) -> None:
        """Watch what goes to the card and what is made of it there."""
        for operator in _FOLLOWED:
            unknown = "values that depend on it are not known"
            install(f"values of {operator}", unknown, self._follow, operator)

    def _follow(self, operator: str) -> None:
        followed = self._followed(operator)
        put_in_front(self._torch, operator, "CUDA", followed, dtypes=self.held)

    def of(self, tensor: Any) -> Any:
        """The values of a tensor on the card, as a CPU tensor; None if they are not known."""
        if tensor.dtype not in self.held or not self._copies:
            return None
        copy = self._copies.get(tensor.untyped_storage()._cdata)
        if copy is None or copy.storage.expired() or copy.version != _version(tensor):
            return None
        return self._view(copy.content, tensor)

    def on_host(self, value: Any) -> Any:
        """An argument with every tensor on the card replaced by its values.

        Raises ValueError if one of them is not known.
        """
        if isinstance(value, self._torch.Tensor):
            if not value.is_cuda:
                return value
            values = self.of(value)
            if values is None:
                raise ValueError("not known")
            return values
        if type(value) in (list, tuple):
            return type(value)(self.on_host(each) for each in value)
        return value

    def can_hold(self, tensor: Any, kinds: frozenset[Any]) -> bool:
        """Whether a tensor on the card is of one of these kinds, and of a size to remember."""
        return tensor.dtype in kinds and 0 < tensor.nbytes <= MAX_BYTES

    def is_followed(self, result: Any) -> bool:
        """Whether a result is of a kind whose values are worked out."""
        kind = result.dtype
        return kind in self.kinds or (kind in self.held and 0 < result.nbytes <= FEW_BYTES)

    def may_follow(self, result: Any) -> bool:
        """Whether the values of a result could be worked out, as something is known at all."""
        return bool(self._copies) and bool(result.is_cuda) and self.is_followed(result)

    def learn(self, tensor: Any, values: Any) -> None:
        """From now on, `tensor`, which was just made on the card, has these values."""
        from torch.multiprocessing.reductions import StorageWeakRef

        storage = tensor.untyped_storage()
        if tensor.dtype not in self.held or not 0 < storage.nbytes() <= MAX_BYTES:
            return
        # Not `torch.zeros`, which starts PyTorch's threads for it and waits for them: this happens
        # in the middle of the script's backward pass.
        content = self._torch.frombuffer(bytearray(storage.nbytes()), dtype=self._torch.uint8)
        self._view(content, tensor).copy_(values)
        reference = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
        self._copies[storage._cdata] = _Copy(reference, _version(tensor), content)
        if len(self._copies) >= self._next_purge:
            self._purge()

    def overwrite(self, tensor: Any, values: Any) -> None:
        """`tensor` was written behind PyTorch's back; with None, nobody knows what."""
        storage = tensor.untyped_storage()
        known_before = self.of(tensor)
        if values is not None and known_before is not None:
            known_before.copy_(values.reshape(tensor.shape))
        else:
            self._copies.pop(storage._cdata, None)
            # Of a part alone nothing is kept: a copy is that of a whole storage.
            if values is not None and tensor.nbytes == storage.nbytes():
                self.learn(tensor, values.reshape(tensor.shape))

    def _purge(self) -> None:
        dead = [key for key, copy in self._copies.items() if copy.storage.expired()]
        for key in dead:
            del self._copies[key]
        self._next_purge = 2 * len(self._copies) + 256

    def _view(self, content: Any, tensor: Any) -> Any:
        """The part of a storage's copy that a tensor on the card shows of the storage."""
        return content.view(tensor.dtype).as_strided(
            tensor.size(), tensor.stride(), tensor.storage_offset()
        )

    def _followed(self, operator: str) -> Callable[..., Any]:
        name, _, overload = operator.partition(".")
        operation = getattr(getattr(self._torch.ops.aten, name), overload or "default")

        def compute(result: Any, arguments: Any, options: Any) -> None:
            known = [
                self.of(each) if isinstance(each, self._torch.Tensor) and each.is_cuda else each
                for each in arguments
            ]
            if all(each is not None for each in known):
                self.learn(result, operation(*known, **options))

        def followed(original: Any, tensor: Any, *arguments: Any, **options: Any) -> Any:
            result = original(tensor, *arguments, **options)
            if self._copies and result.dtype in self.kinds:
                self.attempt(compute, result, (tensor, *arguments), options)
            return result

        return followed

    def attempt(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What cannot be worked out on the host (an odd overload, a lazy tensor) is not known."""
        try:
            return function(*arguments)
        except Exception:
            return None


def _version(tensor: Any) -> int:
    # Tensors of the inference mode are not counted; scripts do not write into them after a read.
    return 0 if tensor.is_inference() else int(tensor._version)
