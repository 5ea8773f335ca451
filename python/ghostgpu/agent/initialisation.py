"""Skips the CPU initialisation of large weights that only feed the virtual card.

The card holds no values, so it cannot matter what a weight was initialised with; a model of seven
billion weights would still spend minutes and 27 GB on it. Small models are left alone: the first
`REAL_ELEMENTS` elements and all small tensors are initialised as usual, so that their random
numbers, and those of the script, are the usual ones.
"""

from __future__ import annotations

import functools
import threading
from typing import Any, Callable

from .blank_tensors import BlankTensors
from .guard import note_fault
from .report import RECORD
from .sizes import human

REAL_ELEMENTS = 32 << 20
"""Elements that are initialised for real before anything is skipped."""

MIN_ELEMENTS = 1 << 20
"""Tensors with fewer elements are never skipped."""

_WHOLE_FUNCTIONS = (
    # Functions of `torch.nn.init` that do more than one `normal_` or `uniform_`.
    "_no_grad_trunc_normal_",
    "orthogonal_",
    "sparse_",
    "eye_",
    "dirac_",
    "constant_",
    "ones_",
    "zeros_",
)


class InitialisationSkipper:
    """Wraps PyTorch's initialisers; small tensors and early ones are still initialised."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._blanks = BlankTensors(torch)
        self._real_elements = 0
        self._skipped_tensors: dict[int, int] = {}
        self._nested = threading.local()

    def install(self) -> None:
        """Wrap the initialisers that models call, directly or through `torch.nn.init`."""
        torch = self._torch
        for name in ("normal_", "uniform_"):
            setattr(torch.Tensor, name, self._wrapped(getattr(torch.Tensor, name)))
        for name in _WHOLE_FUNCTIONS:
            original = getattr(torch.nn.init, name, None)
            if original is not None:
                setattr(torch.nn.init, name, self._wrapped(original))

    def _wrapped(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def initialise(tensor: Any, *arguments: Any, **options: Any) -> Any:
            if getattr(self._nested, "active", False) or not self._is_skippable(tensor):
                return original(tensor, *arguments, **options)
            if self._skips(tensor):
                return tensor
            # `orthogonal_` calls `normal_`: count its tensor only once.
            self._nested.active = True
            try:
                self._real_elements += tensor.numel()
                return original(tensor, *arguments, **options)
            finally:
                self._nested.active = False

        return initialise

    def _is_skippable(self, tensor: Any) -> bool:
        """Whether this is an ordinary CPU tensor: not a fake one, not a view into shared data."""
        torch = self._torch
        return (
            type(tensor) in (torch.Tensor, torch.nn.Parameter)
            and tensor.device.type == "cpu"
            and tensor.is_floating_point()
            and tensor.layout == torch.strided
        )

    def _skips(self, tensor: Any) -> bool:
        if tensor.numel() < MIN_ELEMENTS:
            return False
        if self._real_elements + tensor.numel() <= REAL_ELEMENTS:
            return False
        try:
            storage = tensor.untyped_storage()
            # Memory of the process itself, neither shared with others nor mapped from a file.
            if not storage.resizable() or tensor.is_shared():
                return False
            if not self._blanks.is_unwritten(tensor):
                return False
            self._blanks.add(tensor)
            self._skipped_tensors[storage._cdata] = tensor.numel() * tensor.element_size()
            return True
        except Exception as error:
            note_fault("skipping an initialisation", error)
            return False

    def tell(self) -> None:
        """Say in the report what was skipped."""
        if not self._skipped_tensors:
            return
        count = len(self._skipped_tensors)
        size = human(sum(self._skipped_tensors.values()))
        RECORD.assume(
            f"{count} large CPU {'tensor was' if count == 1 else 'tensors were'} not initialised "
            f"({size}): they hold zeros, and the CPU's random numbers differ from a "
            "real run's after the first of them; --full-init initialises everything"
        )
