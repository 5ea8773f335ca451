"""The tricks that make a training fit: one file each, the same code in rehearsals and real runs.

They are installed into a process with an unmodified script (`start`), by the agent of a rehearsal
or by `ghostgpu launch`. `catalogue.json` describes each of them, and which ones conflict. Nothing
here needs more than torch, and nothing is imported before it is needed.
"""

from __future__ import annotations

# Not from `typing`, which is slow to import: every Python process loads this file.
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

    The result says what each trick did, once the script has ended. `refusal` makes the exception
    that a trick raises if it would be wrong for this script; the default is `Refused`. In a
    rehearsal nothing is computed, so tricks need not write values.
    """
    from .starting import start as start_them

    return start_them(torch, requests, refusal, is_rehearsed)
