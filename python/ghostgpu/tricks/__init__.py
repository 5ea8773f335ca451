"""The tricks that make a training fit: one file each, the same code rehearsed and on a real card.

They are installed into a process whose script is unmodified (`start`): by the agent of a rehearsal,
and by `ghostgpu launch`. `catalogue.json` describes each of them, and what conflicts with what.
Nothing here needs more than torch, and nothing is imported before it is asked for.
"""

from __future__ import annotations

# Spelled out, as every Python process loads this file, and `typing` takes a while.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from .refusal import Refusal
    from .starting import Started

__all__ = ["start"]


def start(
    torch: Any,
    requests: Sequence[tuple[str, Mapping[str, str]]],
    refusal: Refusal | None = None,
    *,
    is_rehearsed: bool = False,
) -> Started:
    """Install tricks, by name and with their options, in the order of the catalogue.

    What each has done can be asked of the result when the script has ended. `refusal` makes the
    exception for a trick that cannot be right here; `Refused` if it is left out. In a rehearsal
    nothing is computed, and tricks need not write values that nobody reads.
    """
    from .starting import start as start_them

    return start_them(torch, requests, refusal, is_rehearsed)
