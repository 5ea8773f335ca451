"""The policy for unknown values: what they read as. All of it is in this file.

Nothing is computed on the card, but scripts read results from it. Zeros would make many of them
fail: `log10(1 / mse.item())` divides by zero, and a check such as `(scale > 0).all()` fails. So an
unknown value reads as something ordinary:

* a floating-point number is 0.5, but the least of several (`min`) is 0.25, so their span is not
  zero, and a result of `softmax` over n elements is 1 / n, so that probabilities add up to one;
* several floating-point numbers that are copied to the host together differ: they lie between 0.25
  and 0.75. Code on the host fails on equal ones: t-SNE crashes, and quantiles are not unique. Four
  in a row rise, as the corners of a box do, and a square matrix is symmetric with a dominant
  diagonal, so that it can be inverted and factorised;
* a single number that is computed from single numbers is what these give, where that is positive:
  the time of a solver that adds up its steps passes;
* a whole number is 0, which is in range as a class, a token or a position;
* a comparison is made with such numbers, and so is any other question about single elements
  (`isnan`, `isfinite`, `~`, `&`);
* `all` is true and `any` is false: checks find nothing unusual; but what no finite number makes
  true (`isnan`) is neither true of all nor of any; `equal` and `allclose` are true;
* the number of true elements in a mask, also in one that was converted to numbers, is the size
  assumed for selections: all, or none where no finite number makes the mask true (`isnan`);
* what is computed from such certain values alone is certain too, also where it is zero;
* an `assert` reads the value with which it passes;
* checks that PyTorch's own functions make of their arguments pass (`torch.normal`: no negative
  deviation);
* overflow checks of a gradient scaler find nothing.

With `--values zero`, every unknown value is zero, false, or the empty answer.
`docs/values.md` has this for users.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

from ..operators import Operators
from .known_values import KnownValues

ORDINARY = 0.5
"""What a floating-point number reads as: positive and below one, so that logarithms and quotients
of it, and of one minus it, are in range."""

WITHOUT_EFFECT = frozenset(("_amp_foreach_non_finite_check_and_unscale_", "_amp_update_scale_"))
"""Writes that change nothing unless something unusual happens: to a gradient scaler's overflow flag
and scale."""

LEAST = 0.25
"""What the minimum of several floating-point numbers reads as."""

_DIFFERENT = 65_537
"""How many different numbers there are: a prime, so that rows of any length differ."""

_SEED_OF_DIFFERENT = 5
_COORDINATES_OF_BOX = 4
_MOST_ROWS = 1024
"""Larger square matrices are pictures rather than matrices that somebody inverts."""

_ORDINARY_NUMBERS = (0.5, -0.5, 0.0, 2.0, -1e4, 1e4)
_WHOLE_NUMBERS = (0, 1, -1, 5, -100, 300)
"""Values that are tried for unknown numbers, to see whether a mask depends on them."""

_TRUE = frozenset(("all", "_is_all_true", "isclose", "isreal"))
_FALSE = frozenset(("any", "_is_any_true", "isin"))
_OF_ALL = frozenset(("all", "any", "_is_all_true", "_is_any_true"))
"""Questions about all elements of a mask together."""
_COUNTS = frozenset(("sum", "count_nonzero", "nansum"))
_PICKS = frozenset(("max", "min", "amax", "amin", "median", "mode", "getitem", "index_select"))
"""Results that are elements of what went in."""
_MEANS = frozenset(("mean", "nanmean"))
_OF_TWO = frozenset(("max", "min"))
"""Operators that are pointwise if they are given two tensors."""
_TRUTHS = {"equal": True, "allclose": True}

CHECK_FOR_INVALID = frozenset(("istft",))
"""Functions of PyTorch whose argument check reads true if an argument is invalid."""

GUESSED = frozenset(("softmax", "min", "amin", "aminmax"))
"""Functions whose floating-point results have their own guess."""

MAX_ELEMENTS = 1 << 24


class Plausible:
    """Answers for values that are not known."""

    def __init__(self, torch: Any, known: KnownValues, *, is_zero: bool, share: float) -> None:
        self._torch = torch
        self._known = known
        self._operators = Operators(torch)
        self.is_zero = is_zero
        self.share = share
        """How much of a selection is assumed to be selected."""
        self._is_checking_for_invalid = False
        self._different: Any = None

    @contextlib.contextmanager
    def checking_for_invalid(self) -> Iterator[None]:
        """A context in which a function checks for invalid arguments, and true means invalid."""
        self._is_checking_for_invalid = True
        try:
            yield
        finally:
            self._is_checking_for_invalid = False

    def selected(self, count: int) -> int:
        """How many of `count` elements an unknown mask is assumed to select."""
        return max(int(count * self.share), 1) if count else 0

    def of(self, tensor: Any, *, is_check: bool = False, asserted: bool | None = None) -> Any:
        """What each element of an unknown tensor on the card reads as.

        `is_check`: one of PyTorch's own functions reads it to validate its arguments.
        `asserted`: an `assert` reads it, and passes with this value.
        """
        if self.is_zero:
            return 0
        if asserted is not None and tensor.dtype is self._torch.bool:
            return asserted
        guess = self._known.guess_of(tensor)
        if guess is not None:
            return guess
        if tensor.dtype is self._torch.bool:
            return is_check and not self._is_checking_for_invalid
        return ORDINARY if tensor.is_floating_point() or tensor.is_complex() else 0

    def fill(self, copy: Any, tensor: Any) -> None:
        """Fill a copy of an unknown tensor on the host, which has zeros."""
        value = self.of(tensor)
        if not value:
            return
        is_varied = tensor.is_floating_point() and self._known.guess_of(tensor) is None
        if not is_varied or copy.numel() == 1:
            copy.fill_(value)
            return
        with self._known.host.working(is_over_soon=True):
            self._fill_differently(copy)

    def _fill_differently(self, copy: Any) -> None:
        torch, shape = self._torch, tuple(copy.shape)
        if self._different is None:
            generator = torch.Generator("cpu").manual_seed(_SEED_OF_DIFFERENT)
            drawn = torch.rand(_DIFFERENT, generator=generator, device="cpu", dtype=torch.float32)
            self._different = drawn.mul_(1 - 2 * LEAST).add_(LEAST)
        flat = copy.view(-1) if copy.is_contiguous() else copy.new_empty(copy.numel())
        for start in range(0, flat.numel(), _DIFFERENT):
            part = flat[start : start + _DIFFERENT]
            part.copy_(self._different[: part.numel()])
        values = flat.view(shape)
        if shape[-1] == _COORDINATES_OF_BOX:
            values = values.sort(-1).values
        elif len(shape) > 1 and 1 < shape[-1] == shape[-2] <= _MOST_ROWS:
            diagonal = values.diagonal(dim1=-2, dim2=-1) / 4 + ORDINARY
            values = (values + values.mT) / (4 * shape[-1])
            values.diagonal(dim1=-2, dim2=-1).copy_(diagonal)
        if values.data_ptr() != copy.data_ptr():
            copy.copy_(values)

    def truth_of(self, operator: str, answer: bool, asserted: bool | None) -> bool:
        """What a function that reads a truth value itself (`equal`) returns."""
        if self.is_zero or operator not in _TRUTHS:
            return answer
        return _TRUTHS[operator] if asserted is None else asserted

    def note_result(
        self, original: Any, operator: str, result: Any, arguments: Any, options: Any
    ) -> None:
        """Note a guess for a result that was computed from unknown values."""
        if self.is_zero:
            return
        values = result if isinstance(result, self._torch.Tensor) else result[0]
        if values.is_floating_point():
            if self._known.attempt(
                self._note_certain, original, operator, values, arguments, options
            ):
                return
            if values.numel() == 1:
                self._known.attempt(
                    self.note_single, original, operator, values, arguments, options
                )
            return
        if values.dtype not in self._known.kinds or not 0 < values.numel() <= MAX_ELEMENTS:
            return
        guess = self._known.attempt(self._guess, original, operator, values, arguments, options)
        if guess is not None and not self._known.has_entry(values):
            is_bool = values.dtype is self._torch.bool
            is_sure = self._known.attempt(self._are_sure, arguments) or (
                is_bool
                and self._known.attempt(
                    self._is_sure, original, operator, guess, arguments, options
                )
            )
            self._known.keep(values, None, guess, is_sure=bool(is_sure))

    def _note_certain(
        self, original: Any, operator: str, result: Any, arguments: Any, options: Any
    ) -> bool:
        """Note floating-point numbers that are certain, and counts; whether there are such.

        `torch.isnan(x).float().mean()` is zero for any finite numbers, and zero is what an overflow
        check of the script's own has to read.
        """
        known, first = self._known, arguments[0]
        guess = known.guess_of(first) if isinstance(first, self._torch.Tensor) else None
        if guess is None or known.has_entry(result) or not result.numel():
            return False
        is_sure = self._are_sure(arguments)
        each = first.numel() // result.numel()
        if operator in _COUNTS and known.is_mask(first):
            number = self.count_of(first, each)
        elif not is_sure:
            return False
        elif self._is_pointwise(operator, arguments):
            with known.host.working():
                number = original(*map(self._one, arguments), **options).item()
        elif operator in _COUNTS:
            number = guess * each
        elif operator in _PICKS or operator in _MEANS:
            number = guess
        else:
            return False
        known.keep(result, None, float(number), is_sure=is_sure)
        return True

    def _is_pointwise(self, operator: str, arguments: Any) -> bool:
        if operator in _OF_TWO:
            return sum(isinstance(it, self._torch.Tensor) for it in arguments) == 2
        return self._operators.is_pointwise(operator)

    def _are_sure(self, arguments: Any) -> bool:
        """Whether all tensors among a call's arguments are the same for any finite numbers."""
        tensors = [it for it in arguments if isinstance(it, self._torch.Tensor)]
        return bool(tensors) and all(
            self._known.sure_guess_of(it) is not None
            if it.is_cuda and self._known.content_of(it) is None
            else it.numel() == 1
            for it in tensors
        )

    def note_single(
        self, original: Any, operator: str, result: Any, arguments: Any, options: Any
    ) -> None:
        """A single floating-point number was computed from numbers that are not all known."""
        if self.is_zero:
            return
        tensors = [it for it in arguments if isinstance(it, self._torch.Tensor)]
        if not self._is_pointwise(operator, arguments):
            return
        if any(it.numel() != 1 for it in tensors) or self._known.has_entry(result):
            return
        with self._known.host.working():
            number = original(*map(self._one, arguments), **options).item()
        # Nothing, less than nothing and infinity may all be out of range for what comes next.
        if 0 < number < math.inf:
            self._known.keep(result, None, number)

    def note_number(self, operator: str, result: Any, arguments: Any, options: Any) -> None:
        """One of the functions in `GUESSED` was called."""
        values = result if isinstance(result, self._torch.Tensor) else result[0]
        if self.is_zero or type(values) is not self._torch.Tensor:
            return
        if not values.is_cuda or not values.is_floating_point():
            return
        if not values.numel() or self._known.has_entry(values):
            return
        if operator == "softmax":
            dim = options.get("dim", arguments[1] if len(arguments) > 1 else None)
            if type(dim) is int:
                self._known.keep(values, None, 1 / values.size(dim))
        elif not isinstance(arguments[1] if len(arguments) > 1 else None, self._torch.Tensor):
            self._known.keep(values, None, LEAST)

    def _guess(
        self, original: Any, operator: str, result: Any, arguments: Any, options: Any
    ) -> Any:
        first = arguments[0]
        if operator in _OF_ALL:
            sure = self._known.sure_guess_of(first)
            if sure is not None:
                return bool(sure)
        if operator in _TRUE:
            return not self._is_checking_for_invalid
        if operator in _FALSE:
            return False
        if operator in _COUNTS:
            if self._known.is_mask(first):
                return self.count_of(first, first.numel() // result.numel())
            return None
        if operator in _PICKS and not self._is_pointwise(operator, arguments):
            return self._known.guess_of(first)
        if self._is_pointwise(operator, arguments):
            with self._known.host.working():
                answer = original(*map(self._one, arguments), **options)
            return answer.item()
        return None

    def count_of(self, mask: Any, count: int) -> int:
        """How many of the `count` elements of an unknown mask are assumed to be true."""
        sure = self._known.sure_guess_of(mask)
        if sure is None:
            return self.selected(count)
        return count if sure else 0

    def _is_sure(
        self, original: Any, operator: str, guess: Any, arguments: Any, options: Any
    ) -> bool:
        """Whether the result is the same for any numbers that the unknown arguments may be."""
        if not self._operators.is_pointwise(operator):
            return False
        tensors = {id(it): it for it in arguments if isinstance(it, self._torch.Tensor)}
        # Also what they are compared with: `x == 1` is true for one number alone.
        named = [it for it in arguments if type(it) in (int, float) and math.isfinite(it)]
        trials = (len(_ORDINARY_NUMBERS) + len(named)) * (1 if len(tensors) == 1 else 2)
        with self._known.host.working():
            for trial in range(trials):
                # First all tensors are tried as the same number, in the second half as others.
                half = trial // (len(_ORDINARY_NUMBERS) + len(named))
                tried = {
                    key: self._tried(tensor, trial + place * half, named)
                    for place, (key, tensor) in enumerate(tensors.items())
                }
                if any(one is None for one in tried.values()):
                    return False
                answer = original(*(tried.get(id(it), it) for it in arguments), **options)
                if answer.item() != guess:
                    return False
        return True

    def _tried(self, tensor: Any, number: int, named: list[int | float]) -> Any:
        """One of the numbers to try for a tensor's elements; None if it has no such number."""
        torch = self._torch
        if not tensor.is_cuda or self._known.content_of(tensor) is not None:
            return self._one(tensor) if tensor.numel() == 1 else None
        sure = self._known.sure_guess_of(tensor)
        if sure is not None:
            value = sure
        elif tensor.dtype is torch.bool:
            value = number % 2 == 0
        elif tensor.is_floating_point():
            ordinary = (*_ORDINARY_NUMBERS, *named)
            value = ordinary[number % len(ordinary)]
        elif tensor.is_complex() or tensor.dtype is torch.uint8:
            return None
        else:
            whole = (*_WHOLE_NUMBERS, *map(int, named))
            value = whole[number % len(whole)]
        return torch.tensor(value, dtype=tensor.dtype, device="cpu")

    def _one(self, argument: Any) -> Any:
        """For a tensor, one element as it would be read; other arguments unchanged."""
        if not isinstance(argument, self._torch.Tensor):
            return argument
        element = self._known.content_of(argument) if argument.is_cuda else None
        value = self.of(argument)
        if element is not None or not argument.is_cuda:
            values = self._known.of(argument) if argument.is_cuda else argument
            value = values.reshape(-1)[0].item()
        return self._torch.tensor(value, dtype=argument.dtype, device="cpu")

    def copied(self, source: Any, result: Any) -> None:
        """A tensor was copied on the card: the copy has the same guess."""
        guess = self._known.guess_of(source)
        if guess is not None and not self._known.has_entry(result):
            if not result.is_floating_point():
                guess = int(guess) if result.dtype is not self._torch.bool else bool(guess)
            is_sure = self._known.sure_guess_of(source) is not None
            is_mask = self._known.is_mask(source)
            self._known.keep(result, None, guess, is_sure=is_sure, is_mask=is_mask)
