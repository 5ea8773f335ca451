"""A class for a single instance, for `ghostgpu.fit`: the same module with another forward pass."""

from __future__ import annotations

import copyreg
from typing import Any, Callable


def class_with_forward(original: Any, forward: Callable[..., Any]) -> Any:
    """A class that looks like the original one and differs only in its forward pass."""

    def reduce_ex(self: Any, protocol: Any) -> Any:
        # Copies and pickles have the model's original class, so they do not need this package.
        reduced = list(original.__reduce_ex__(self, protocol))
        if reduced[0] is copyreg.__newobj__:  # type: ignore[attr-defined]
            reduced[:2] = [plain_instance, (original,)]
        return tuple(reduced)

    made = type(original.__name__, (original,), {"forward": forward, "__reduce_ex__": reduce_ex})
    made.__module__, made.__qualname__ = original.__module__, original.__qualname__
    made.__doc__ = original.__doc__
    return made


def plain_instance(kind: Any) -> Any:
    """An empty instance that copying or unpickling then fills."""
    return kind.__new__(kind)
