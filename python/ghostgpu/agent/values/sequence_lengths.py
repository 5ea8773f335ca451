"""Sequence lengths that a script keeps on the card, for losses that read them.

`ctc_loss` copies the lengths of inputs and targets to the host in C++, past the agent's wrappers,
and the memory it takes depends on the longest. So the agent passes it the lengths as host tensors:
the known ones, or the longest that the tensors allow.
"""

from __future__ import annotations

from typing import Any, Callable

from ..calls import put_around
from ..guard import quietly
from ..report import RECORD
from ..stacks import users_line
from .known_values import KnownValues


class SequenceLengths:
    """Wraps `torch.ctc_loss`."""

    def __init__(self, torch: Any, known: KnownValues) -> None:
        self._torch = torch
        self._known = known

    def install(self) -> None:
        """Wrap the function that `torch.nn.functional.ctc_loss` calls."""
        put_around(self._torch, self._torch, "ctc_loss", self._with_lengths)

    def _with_lengths(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def ctc_loss(
            log_probs: Any,
            targets: Any,
            input_lengths: Any,
            target_lengths: Any,
            *arguments: Any,
            **options: Any,
        ) -> Any:
            if self._is_on_card(input_lengths) or self._is_on_card(target_lengths):
                count = log_probs.size(1) if log_probs.dim() == 3 else 1
                longest = (
                    [log_probs.size(0)] * count,
                    [targets.size(1)] * count
                    if targets.dim() == 2
                    else _shared_out(targets.numel(), count),
                )
                # Both or neither: PyTorch takes two tensors or two lists.
                input_lengths = self._on_host(input_lengths, longest[0])
                target_lengths = self._on_host(target_lengths, longest[1])
            return original(
                log_probs, targets, input_lengths, target_lengths, *arguments, **options
            )

        return ctc_loss

    def _is_on_card(self, lengths: Any) -> bool:
        return isinstance(lengths, self._torch.Tensor) and bool(lengths.is_cuda)

    def _on_host(self, lengths: Any, longest: list[int]) -> list[int]:
        if not isinstance(lengths, self._torch.Tensor):
            return list(lengths)
        values = self._known.of(lengths) if lengths.is_cuda else lengths
        if values is None:
            self._assume(len(longest))
            return longest
        return [int(value) for value in values.reshape(-1).tolist()]

    @quietly
    def _assume(self, count: int) -> None:
        RECORD.assume(
            f"{users_line()}: {count} sequences in ctc_loss() are as long as the tensors allow: "
            "their lengths are on the card"
        )


def _shared_out(total: int, count: int) -> list[int]:
    """Lengths of targets that are concatenated in one row: they add up to its length."""
    return [total // count + (place < total % count) for place in range(count)]
