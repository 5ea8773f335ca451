"""GhostGPU: run a PyTorch training on a GPU that isn't there, and make it fit on one that is.

The command `ghostgpu` rehearses trainings. In a script's own code, `fit`, `accumulate` and
`chunked_cross_entropy` apply tricks that save memory and leave gradients as they are. Importing
this package imports neither torch nor any of these; they are loaded when they are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .fit import fit
    from .tricks.accumulation import accumulate
    from .tricks.loss_head import chunked_cross_entropy
    from .tricks.refusal import Refused

__version__ = "0.1.0"
__all__ = ["Refused", "__version__", "accumulate", "chunked_cross_entropy", "fit"]

_PLACES = {
    "Refused": "tricks.refusal",
    "accumulate": "tricks.accumulation",
    "chunked_cross_entropy": "tricks.loss_head",
    "fit": "fit",
}


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(f"{__name__}.{place}"), name)
    # `fit` is also the name of its module, which the import has stored here.
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
