"""Values of tensors that a script makes on the card: ones, zeros, a row of numbers.

Only where Python makes them. Extensions in C++ make zeros to have their own kernels write results
into (torchvision's `nms` marks there which boxes to keep), and no version counts such a write: of
those tensors nothing may be taken for known.
"""

from __future__ import annotations

from typing import Any, Callable

from .calls import put_around
from .known_values import KnownValues

_OF_A_SHAPE = ("ones", "zeros", "full", "arange")
_LIKE_A_TENSOR = ("ones_like", "zeros_like", "full_like")
"""Functions of `torch` that take shape and type from a tensor, and not its values."""
_METHODS = ("new_ones", "new_zeros", "new_full")


class KnownFactories:
    """Learns what Python fills a new tensor with."""

    def __init__(self, torch: Any, known: KnownValues) -> None:
        self._torch = torch
        self._known = known

    def install(self) -> None:
        """Wrap what Python calls."""
        torch = self._torch
        for name in _OF_A_SHAPE:
            put_around(torch, torch, name, lambda original: self._made(original, tuple))
        for name in _LIKE_A_TENSOR:
            put_around(torch, torch, name, lambda original: self._made(original, self._same_shape))
        for name in _METHODS:
            put_around(
                torch, torch.Tensor, name, lambda original: self._made(original, self._same_type)
            )

    def _made(
        self, original: Callable[..., Any], without_card: Callable[[Any], Any]
    ) -> Callable[..., Any]:
        known = self._known
        # Zeros are what an unknown number reads as anyway, and optimizers make many.
        kinds = known.kinds if "zeros" in original.__name__ else known.held
        tensor_type = self._torch.Tensor

        def learn(result: Any, arguments: Any, options: Any) -> None:
            # The result's own type: where none was asked for, it may be the script's default.
            host = {**options, "device": "cpu", "dtype": result.dtype, "pin_memory": False}
            host = {name: known.on_host(value) for name, value in host.items()}
            known.learn(result, original(*known.on_host(without_card(arguments)), **host))

        def made(*arguments: Any, **options: Any) -> Any:
            result = original(*arguments, **options)
            if (
                type(result) is tensor_type
                and result.is_cuda
                and known.can_hold(result, kinds)
                and options.get("out") is None
            ):
                known.attempt(learn, result, arguments, options)
            return result

        return made

    def _same_shape(self, arguments: Any) -> Any:
        """The arguments, with one on the host for the tensor whose shape and type are wanted."""
        first, *others = arguments
        return (self._torch.empty(first.shape, dtype=first.dtype, device="cpu"), *others)

    def _same_type(self, arguments: Any) -> Any:
        """The arguments, with one on the host for the tensor whose type is wanted."""
        first, *others = arguments
        return (self._torch.empty(0, dtype=first.dtype, device="cpu"), *others)
