"""Results whose shape depends on values: assumes a shape, and says so.

The card holds no values, so `nonzero` would find nothing and a boolean mask would select nothing.
Where the values follow from the host (`known_values`), so does the size. Otherwise the largest
result is assumed: every element is selected, every element is unique. With a `share` below one
(`plausible`), that part of the largest is assumed, to show how much memory depends on it.

The real kernels still run, so that their allocations are the real ones. Only the one number that
they read back from the card, the length of the result, is decided here and supplied by the stand-in
library. How many bytes they read is in PyTorch's `Nonzero.cu`, `Unique.cu` and `Repeat.h`
(`aten/src/ATen/native`), unchanged from 2.6 to 2.15.
"""

from __future__ import annotations

import math
import sys
import threading
from typing import Any, Callable

from ..calls import put_around
from ..guard import quietly
from ..kernels import put_in_front
from ..report import RECORD
from ..stacks import users_line
from .known_values import KnownValues
from .plausible import Plausible
from .readbacks import Readbacks

INT32_BYTES = 4

MOST_COUNTED_PLACES = 1 << 16
"""Beyond this, places are not counted: scripts may coalesce the same tensor in every step."""


class ShapeAssumptions:
    """Decides the lengths of results that depend on values."""

    def __init__(
        self, torch: Any, readbacks: Readbacks, known: KnownValues, plausible: Plausible
    ) -> None:
        self._torch = torch
        self._readbacks = readbacks
        self._known = known
        self._plausible = plausible
        self._certain = threading.local()
        self._lines: set[str] = set()
        # Thrust, which counts what is unique along a dimension, reads an `int` or, since the
        # version in CUDA 13.1, a 64-bit number.
        self._thrust_length_bytes = 8 if _cuda_version(torch) >= (13, 1) else INT32_BYTES

    def install(self) -> None:
        """Put replacements in front of the CUDA kernels whose result sizes depend on values."""
        for operator, replacement in (
            ("nonzero", self._nonzero),
            ("nonzero.out", self._nonzero),
            ("_unique", self._unique),
            ("_unique2", self._unique),
            ("unique_consecutive", self._unique_consecutive),
            ("unique_dim", self._unique_dim),
            ("unique_dim_consecutive", self._unique_dim),
            ("repeat_interleave.Tensor", self._repeat_interleave),
            ("bincount", self._bincount),
            ("histc", self._histc),
            ("_nested_tensor_from_mask", self._nested_from_mask),
            ("_nested_tensor_from_mask_left_aligned", self._is_mask_left_aligned),
        ):
            put_in_front(self._torch, operator, "CUDA", replacement)
        put_around(self._torch, self._torch, "combinations", self._combinations)
        put_around(self._torch, self._torch, "sparse_coo_tensor", self._sparse_coo_tensor)
        put_in_front(self._torch, "_coalesce", "SparseCUDA", self._coalesce)

    def _coalesce(self, original: Any, tensor: Any) -> Any:
        """Coalescing a sparse COO tensor, which sums entries of the same place."""
        count = tensor._nnz()
        is_counted = 1 < count <= MOST_COUNTED_PLACES
        places = self._known.attempt(self._known.of, tensor._indices()) if is_counted else None
        if places is not None:
            count = places.unique(dim=1).shape[1]
            with self._readbacks.answering_copy(count, INT32_BYTES):
                return original(tensor)
        if count > 1:
            self._assume(
                f"all {count} entries of a sparse tensor are for different places in coalesce(): "
                f"{_shape(tensor)}, the largest case"
            )
        with self._readbacks.answering_copy(self._plausible.selected(count), INT32_BYTES):
            return original(tensor)

    def _sparse_coo_tensor(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """A sparse tensor without a given size is as large as its largest indices require."""

        def sparse_coo_tensor(*arguments: Any, **options: Any) -> Any:
            has_size = len(arguments) != 2 or options.get("size") is not None
            indices = None if has_size else arguments[0]
            if isinstance(indices, self._torch.Tensor) and indices.is_cuda and indices.numel():
                places = self._known.attempt(self._known.of, indices)
                if places is not None:
                    dense = tuple(arguments[1].shape[1:])
                    options["size"] = (*(places.max(dim=1).values + 1).tolist(), *dense)
            return original(*arguments, **options)

        return sparse_coo_tensor

    def _nonzero(self, original: Any, tensor: Any, **options: Any) -> Any:
        count = tensor.numel()
        if not count:
            return original(tensor, **options)
        length = getattr(self._certain, "selected", None)
        if length is not None:
            with self._readbacks.answering_copy(length, INT32_BYTES):
                return original(tensor, **options)
        values = self._known.of(tensor)
        if values is not None:
            indices = values.nonzero()
            with self._readbacks.answering_copy(len(indices), INT32_BYTES):
                result = original(tensor, **options)
            # With `out=`, the result may be a part of a larger tensor.
            if not options:
                self._known.learn(result, indices)
            return result
        sure = self._known.sure_guess_of(tensor)
        if sure is None and not _is_printing():
            self._assume(
                f"all {count} elements are selected by nonzero() or a boolean mask: "
                f"{_shape(tensor)}, the largest case"
            )
        # The kernel copies one `int` itself instead of calling `item()`.
        with self._readbacks.answering_copy(self._plausible.count_of(tensor, count), INT32_BYTES):
            return original(tensor, **options)

    def _combinations(self, original: Any) -> Any:
        """PyTorch selects combinations with a mask, but their number does not depend on values."""

        def combinations(input: Any, r: int = 2, with_replacement: bool = False) -> Any:
            count = input.numel()
            self._certain.selected = math.comb(count + r - 1 if with_replacement else count, r)
            try:
                return original(input, r, with_replacement)
            finally:
                self._certain.selected = None

        return combinations

    def _unique(self, original: Any, tensor: Any, *arguments: Any, **options: Any) -> Any:
        values = self._known.of(tensor)
        count = self._count_unique(tensor, None if values is None else values.unique())
        if tensor.dtype is self._torch.bool:
            # This kernel counts what is true, and copies that `int` itself.
            count = (tensor.numel() if count == 1 else 1) if values is None else int(values.sum())
            answering = self._readbacks.answering_copy(count, INT32_BYTES)
        else:
            answering = self._readbacks.answering(count)
        with answering:
            results = original(tensor, *arguments, **options)
        if values is None:
            self._spread_counts(results, tensor.numel())
        return results

    def _spread_counts(self, results: Any, total: int) -> None:
        """Let the counts of what is unique add up to all elements, if they were asked for."""
        for counts in results[2:]:
            if counts is not None:
                self._spread_evenly(counts, total)

    def _count_unique(self, tensor: Any, values: Any) -> int:
        if values is not None:
            return int(values.numel())
        count = min(tensor.numel(), 2 ** self._bits(tensor.dtype))
        self._assume_unique(tensor, count, tensor.numel(), "elements")
        return self._plausible.selected(count)

    def _bits(self, dtype: Any) -> int:
        """How many bits of an element differ: there are no more values than these allow."""
        return 1 if dtype is self._torch.bool else int(8 * dtype.itemsize)

    def _unique_consecutive(
        self,
        original: Any,
        tensor: Any,
        return_inverse: bool = False,
        return_counts: bool = False,
        dim: int | None = None,
    ) -> Any:
        def consecutive(tensor: Any, *arguments: Any) -> Any:
            return original(tensor, return_inverse, return_counts, dim)

        if dim is None:
            values = self._known.of(tensor)
            found = None if values is None else values.unique_consecutive()
            with self._readbacks.answering(self._count_unique(tensor, found)):
                results = consecutive(tensor)
            if values is None:
                self._spread_counts(results, tensor.numel())
            return results
        return self._unique_dim(consecutive, tensor, dim)

    def _unique_dim(
        self, original: Any, tensor: Any, dim: int, *arguments: Any, **options: Any
    ) -> Any:
        values = self._known.of(tensor) if tensor.numel() else None
        if values is not None:
            count = values.unique(dim=dim).size(dim)
        else:
            count = self._plausible.selected(tensor.size(dim))
            if tensor.numel():
                slices = tensor.size(dim)
                self._assume_unique(tensor, slices, slices, f"slices along dimension {dim}")
        with self._readbacks.answering_copy(count, self._thrust_length_bytes):
            results = original(tensor, dim, *arguments, **options)
        if values is None:
            self._spread_counts(results, tensor.size(dim))
        return results

    def _repeat_interleave(
        self, original: Any, repeats: Any, *, output_size: int | None = None
    ) -> Any:
        values = self._known.of(repeats)
        if values is None and output_size is None and repeats.numel():
            self._assume(f"each of the repeats of repeat_interleave() is 1: {_shape(repeats)}")
        # PyTorch reads the sum of the repeats, and whether none is negative.
        with self._readbacks.answering(repeats.numel() if values is None else int(values.sum())):
            return original(repeats, output_size=output_size)

    def _bincount(self, original: Any, tensor: Any, *arguments: Any, **options: Any) -> Any:
        # If unknown, the largest value reads as 0, so the result has `minlength` bins, or one.
        values = self._known.of(tensor)
        if values is None or not values.numel():
            sentence = f"no value is minlength or more in bincount(): {_shape(tensor)}"
            self._assume(sentence)
            largest = 0
        else:
            largest = int(values.max())
        with self._readbacks.answering(largest):
            result = original(tensor, *arguments, **options)
        if values is None and not result.is_floating_point():
            self._spread_evenly(result, tensor.numel())
        return result

    def _histc(self, original: Any, tensor: Any, *arguments: Any, **options: Any) -> Any:
        result = original(tensor, *arguments, **options)
        if self._known.of(tensor) is None:
            self._spread_evenly(result, tensor.numel())
        return result

    def _spread_evenly(self, counts: Any, total: int) -> None:
        """Assume that unknown values are spread evenly over the bins, so that the counts add up.

        Mixture-of-experts routers exchange such counts and split tensors by them.
        """
        bins = counts.numel()
        if bins:
            each, rest = divmod(total, bins)
            values = [each + (place < rest) for place in range(bins)]
            self._known.learn(counts, self._torch.tensor(values, dtype=counts.dtype))

    def _nested_from_mask(
        self, original: Any, padded: Any, mask: Any, mask_check: bool = True
    ) -> Any:
        """The nested tensor without padding that `TransformerEncoder` makes in evaluation mode.

        The kernel reads all lengths in one copy, which cannot be answered. It runs anyway, for what
        it allocates before that read; its result, which has no sequences, is replaced.
        """
        values = self._known.of(mask)
        longest = mask.size(1)
        if values is None:
            self._assume(f"no sequence is padded in a nested tensor: {_shape(mask)}")
            lengths = self._torch.full((mask.size(0),), self._plausible.selected(longest))
        else:
            lengths = values.sum(1)
        with self._readbacks.answering(0):
            original(padded, mask, mask_check)
        widths = self._torch.full_like(lengths, padded.size(2))
        return self._torch._nested_from_padded(padded, self._torch.stack((lengths, widths), 1))

    def _is_mask_left_aligned(self, original: Any, padded: Any, mask: Any) -> Any:
        """Whether padding comes after the tokens of each sequence; assumed if it is not known."""
        values = self._known.of(mask)
        is_aligned = values is None or bool((values[:, :-1] | ~values[:, 1:]).all())
        with self._readbacks.answering(0, checks=int(is_aligned)):
            return original(padded, mask)

    def _assume_unique(self, tensor: Any, count: int, of: int, what: str) -> None:
        if count:
            who = f"all {count} {what}" if count == of else f"{count} of the {what}"
            self._assume(f"{who} are different in unique(): {_shape(tensor)}, the largest case")

    @quietly
    def _assume(self, sentence: str) -> None:
        line = users_line()
        self._lines.add(line)
        RECORD.report.assumed_sizes = len(self._lines)
        RECORD.assume(f"{line}: {sentence}")


def _shape(tensor: Any) -> str:
    return "x".join(str(size) for size in tensor.shape) or "one value"


def _cuda_version(torch: Any) -> tuple[int, ...]:
    return tuple(int(part) for part in torch.version.cuda.split(".")[:2])


def _is_printing() -> bool:
    """Whether PyTorch is only formatting a tensor, for which it selects what to show."""
    frame = sys._getframe()
    for _ in range(12):
        if frame.f_code.co_filename.endswith("_tensor_str.py"):
            return True
        if frame.f_back is None:
            return False
        frame = frame.f_back
    return False
