"""What one operation of the experiment is: its inputs, what to call, whether to go backward."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

import torch


@dataclass(frozen=True)
class Operation:
    inputs: Callable[[Inputs], tuple[Any, ...]]
    call: Callable[..., Any]
    backward: bool = False
    #: The size of the result depends on the values of the inputs.
    is_data_dependent: bool = False
    #: Refuses to run on a CPU, so the table's self-check leaves it out.
    needs_card: bool = False


OPERATIONS: dict[str, Operation] = {}


def add(
    name: str,
    inputs: Callable[[Inputs], tuple[Any, ...]],
    call: Callable[..., Any],
    *,
    backward: bool = False,
    is_data_dependent: bool = False,
    needs_card: bool = False,
) -> None:
    if name in OPERATIONS:
        raise ValueError(f"two operations are called {name}")
    OPERATIONS[name] = Operation(inputs, call, backward, is_data_dependent, needs_card)


class Inputs:
    """Makes input tensors on one device; `tiny` divides long dimensions for tests on a CPU."""

    def __init__(self, device: str, tiny: bool = False) -> None:
        self.device = device
        self.tiny = tiny

    def _shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(min(n, 64) for n in shape) if self.tiny else shape

    def size(self, length: int) -> int:
        return min(length, 64) if self.tiny else length

    def real(self, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        # Made on the CPU with a fixed seed, so that the experiment starts without random kernels.
        generator = torch.Generator().manual_seed(7)
        values = torch.randn(self._shape(shape), generator=generator)
        return values.to(self.device, dtype)

    def half(self, *shape: int) -> torch.Tensor:
        return self.real(*shape, dtype=torch.float16)

    def brain(self, *shape: int) -> torch.Tensor:
        return self.real(*shape, dtype=torch.bfloat16)

    def whole(self, high: int, *shape: int) -> torch.Tensor:
        """Integers from 0 to `high` - 1."""
        generator = torch.Generator().manual_seed(7)
        values = torch.randint(0, self.size(high), self._shape(shape), generator=generator)
        return values.to(self.device)

    def mask(self, *shape: int) -> torch.Tensor:
        return self.real(*shape) > 0

    def layer(self, layer: torch.nn.Module, dtype: torch.dtype = torch.float32) -> torch.nn.Module:
        return layer.to(self.device, dtype)
