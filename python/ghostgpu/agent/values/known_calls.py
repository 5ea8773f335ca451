"""Follows known values through everything that a script calls in Python.

A mask is made by `torch.eye`, negated, compared and used as an index; positions are counted with
`torch.arange`, shifted and sorted. So the agent wraps all of PyTorch's functions that make or write
tensors (`followed_functions`), above the dispatcher: a Python function in front of the kernels
would cost several microseconds for each of the thousands of calls in a step. A call that works on
activations only pays for one look at its result.

Nothing is computed here. A call whose arguments are all known is remembered (`host_values`) and
repeated on the host when its result is needed.
"""

from __future__ import annotations

import ctypes
import functools
import gc
from types import ModuleType
from typing import Any, Callable

from ...tricks.dynamo_shield import shielded
from ..calls import tell_torchscript
from ..guard import install
from ..kernels import put_in_front
from ..operators import Operators
from .assertions import asserted
from .followed_functions import Followed, followed_functions, is_uncounted
from .host_values import SMALL_BYTES, Blank, Call, Content, Geometry, NotKnown, Shown
from .known_values import KnownValues
from .plausible import CHECK_FOR_INVALID, GUESSED, WITHOUT_EFFECT, Plausible
from .sequence_slots import keep_from_being_sequences

_RESIZES = frozenset(("resize_", "resize_as_"))
_OVERWRITES = frozenset(
    (
        *(
            "fill_",
            "zero_",
            "copy_",
            "normal_",
            "uniform_",
            "random_",
            "bernoulli_",
            "exponential_",
        ),
        *("log_normal_", "cauchy_", "geometric_"),
    )
)
"""Writes that replace everything, so that the previous content does not matter."""


_EMPTY = ("empty", "new_empty")
"""Prefixes of operators that make a tensor to be filled piece by piece."""

_READ_BY_PYTORCH = ("all", "any", "max", "min")
"""Operators whose results PyTorch's own functions read in C++, where Python wrappers see nothing:
the number of classes for `one_hot`, the result of `equal`."""


class KnownCalls:
    """Wraps the functions that Python calls."""

    def __init__(
        self,
        torch: Any,
        known: KnownValues,
        plausible: Plausible,
        on_copy: Callable[[Any, Any], object],
    ) -> None:
        self._torch = torch
        self._on_copy = on_copy
        """Called with source and target of a copy into a tensor on the host."""
        self._known = known
        self._plausible = plausible
        self._operators = Operators(torch)
        self._replacements: dict[int, tuple[Any, Any]] = {}
        """By a function's address: the function, which keeps the address, and its wrapper."""

    def install(self) -> None:
        """Wrap all followed functions."""
        torch = self._torch
        table = _variable_functions(torch)
        for each in followed_functions(torch):
            unknown = "values and sizes that depend on it are not known"
            install(f"call of {each.name}", unknown, self._put_around, each, table)
        wrong = "C code takes tensors for sequences"
        install("slots of sequences", wrong, keep_from_being_sequences, torch.Tensor)
        for operator in _READ_BY_PYTORCH:
            unknown = "values that depend on it are not known"
            install(f"values of {operator}", unknown, self._stand_before, operator)
        # Python caches attributes of classes.
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(type(torch._C._VariableFunctions)))

    def _put_around(self, each: Followed, table: dict[str, Any]) -> None:
        owner, name = each.owner, each.name
        original = getattr(owner, name)
        if id(original) in self._replacements:
            _, replacement = self._replacements[id(original)]
        else:
            wrap = self._written if each.is_in_place else self._made
            function = wrap(original, each.operator)
            replacement = shielded(self._torch, functools.wraps(original)(function))
            self._replacements[id(original)] = (original, replacement)
            if isinstance(owner, ModuleType):
                # `pickle` and `torch.fx` look functions up by module and name.
                replacement.__module__, replacement.__qualname__ = owner.__name__, name
                tell_torchscript(self._torch, original, replacement)
        if owner is self._torch and name in table:
            # C++ looks functions up in this table to pass them to `__torch_function__` of tensor
            # subclasses, which compare them with those in `torch`.
            table[name] = staticmethod(replacement)
        if owner is self._torch._C._VariableFunctions:
            table[name] = staticmethod(replacement)
        else:
            setattr(owner, name, replacement)

    def _stand_before(self, operator: str) -> None:
        put_in_front(self._torch, operator, "CUDA", self._kernel(operator))

    def _kernel(self, operator: str) -> Callable[..., Any]:
        function = getattr(self._torch.ops.aten, operator).default

        def kernel(original: Any, tensor: Any) -> Any:
            result = original(tensor)
            self._note_made(function, operator, result, (tensor,), {})
            return result

        return kernel

    def _made(self, original: Callable[..., Any], operator: str) -> Callable[..., Any]:
        tensor_type = self._torch.Tensor
        note = self._note_made
        note_other = self._note_other
        known, plausible = self._known, self._plausible
        note_single = plausible.note_single

        def made(*arguments: Any, **options: Any) -> Any:
            if options and options.get("out") is not None:
                return self._into(original, operator, arguments, options)
            result = original(*arguments, **options)
            if type(result) is tensor_type:
                if result.is_cuda:
                    if not result.requires_grad:
                        note(original, operator, result, arguments, options)
                    elif result.numel() == 1:
                        known.attempt(note_single, original, operator, result, arguments, options)
            elif result is not NotImplemented:
                return note_other(original, operator, result, arguments, options)
            return result

        def asking(*arguments: Any, **options: Any) -> Any:
            with self._plausible.checking_for_invalid():
                return made(*arguments, **options)

        def guessed(*arguments: Any, **options: Any) -> Any:
            result = made(*arguments, **options)
            # Also for results that require a gradient, which are not followed otherwise.
            known.attempt(plausible.note_number, operator, result, arguments, options)
            return result

        if operator in GUESSED:
            return guessed
        return asking if operator in CHECK_FOR_INVALID else made

    def _note_other(
        self, original: Any, operator: str, result: Any, arguments: Any, options: Any
    ) -> Any:
        """Note a result that is not one plain tensor: several, a truth value, a subclass."""
        first = result[0] if isinstance(result, (tuple, list)) and result else None
        if first is not None:
            if type(first) is self._torch.Tensor and first.is_cuda and not first.requires_grad:
                self._note_made(original, operator, result, arguments, options)
        elif type(result) is bool:
            return self._truth(original, operator, result, arguments, options)
        return result

    def _truth(
        self, original: Any, operator: str, result: bool, arguments: Any, options: Any
    ) -> bool:
        if not any(isinstance(it, self._torch.Tensor) and it.is_cuda for it in arguments):
            return result
        try:
            call = self._call(original, operator, arguments, options)
            with self._known.host.working():
                return bool(call.results())
        except Exception:
            return self._plausible.truth_of(operator, result, asserted())

    def _note_made(
        self, original: Any, operator: str, result: Any, arguments: Any, options: Any
    ) -> None:
        known = self._known
        try:
            if type(result) is self._torch.Tensor:
                if not known.can_hold(result) or known.has_entry(result):
                    return
                size_bytes = result.nbytes
            else:
                # What was not asked for may be None.
                size_bytes = max(each.nbytes for each in result if each is not None)
            if self._operators.leaves_unset(operator):
                if operator.startswith(_EMPTY):
                    known.keep(result, None, is_unset=True)
                return
            if size_bytes > SMALL_BYTES and self._operators.is_costly(operator):
                return
            known.made(result, self._call(original, operator, arguments, options))
        except NotKnown:
            self._plausible.note_result(original, operator, result, arguments, options)
        except Exception:
            return  # an odd overload, a lazy tensor: not known

    def _call(self, original: Any, operator: str, arguments: Any, options: Any) -> Call:
        known = self._known
        if operator.startswith("new_") or operator.endswith("_like"):
            # Only shape and dtype of the first tensor matter.
            first, *others = arguments
            kept = (known.blank(first), *known.argument(tuple(others)))
        else:
            kept = known.argument(arguments)
        named = known.options(options)
        if not _has_tensor([kept, *named.values()]) and "device" not in options:
            # The result is on the card because of the script's default device.
            named = {**named, "device": "cpu"}
        is_random = self._operators.is_random(operator)
        return Call(known.host, original, kept, named, is_random=is_random)

    def _into(self, original: Any, operator: str, arguments: Any, options: Any) -> Any:
        """A call with `out=`, whose result is written into an existing tensor."""
        known = self._known
        rest = {name: value for name, value in options.items() if name != "out"}
        # Before the call: the result may be one of the arguments.
        call = known.attempt(self._call, original, operator, arguments, rest)
        result = original(*arguments, **options)
        known.attempt(self._note_out, operator, call, options["out"])
        return result

    def _note_out(self, operator: str, call: Call | None, out: Any) -> None:
        known = self._known
        targets = (out,) if isinstance(out, self._torch.Tensor) else out
        for place, target in enumerate(targets):
            if not target.is_cuda:
                continue
            known.forget(target)
            size_bytes = target.untyped_storage().nbytes()
            if call is None or not known.can_hold(target) or target.nbytes != size_bytes:
                continue
            if not self._operators.leaves_unset(operator):
                of_several = None if targets is not out else place
                content = call.content({of_several: Geometry.of(target)}, size_bytes)
                known.keep(target, content)

    def _written(self, original: Callable[..., Any], operator: str) -> Callable[..., Any]:
        known = self._known
        tensor_type = self._torch.Tensor
        if operator in WITHOUT_EFFECT:
            return self._without_effect(original)
        if operator in _RESIZES:
            return self._resized(original)
        if is_uncounted(operator):
            return self._lists_written(original, operator)
        brings_back = operator == "copy_"

        def written(*arguments: Any, **options: Any) -> Any:
            target: Any = arguments[0] if arguments else None
            if type(target) is not tensor_type or not target.is_cuda:
                result = original(*arguments, **options)
                if brings_back:
                    known.attempt(self._on_copy, arguments[1], target)
                return result
            # Before the call: a write invalidates what is known of a tensor.
            content = self._content_after(original, operator, target, arguments, options)
            result = original(*arguments, **options)
            if content is None:
                known.forget(target)
            else:
                known.attempt(known.keep, target, content)
            return result

        return written

    def _lists_written(self, original: Callable[..., Any], operator: str) -> Callable[..., Any]:
        """A function that writes to lists of tensors behind the back of their versions."""
        known, zero = self._known, self._torch.Tensor.zero_

        def lists_written(*arguments: Any, **options: Any) -> Any:
            result = original(*arguments, **options)
            tensors = [it for listed in arguments if type(listed) in (list, tuple) for it in listed]
            for tensor in tensors:
                content = None
                if operator == "_foreach_zero_" and known.attempt(known.has_entry, tensor):
                    content = self._content_after(zero, "zero_", tensor, (tensor,), {})
                if content is None:
                    known.forget(tensor)
                else:
                    known.attempt(known.keep, tensor, content)
            return result

        return lists_written

    def _resized(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """A resized tensor keeps its content.

        Elements that are added at the end were never written, so any bytes will do for them.
        """
        known = self._known
        tensor_type = self._torch.Tensor

        def resized(target: Any, *arguments: Any, **options: Any) -> Any:
            if type(target) is not tensor_type or not target.is_cuda:
                return original(target, *arguments, **options)
            before = known.attempt(known.content_of, target)
            size_bytes = target.untyped_storage().nbytes()
            result = original(target, *arguments, **options)
            known.forget(target)
            if before is not None and target.untyped_storage().nbytes() != size_bytes:
                before = known.attempt(self._grown, before, target)
            if before is not None:
                known.attempt(known.keep, target, before)
            return result

        return resized

    def _grown(self, before: Content, target: Any) -> Content | None:
        """The previous content, at the beginning of a storage that is larger now."""
        if not self._known.can_hold(target):
            return None
        host, size_bytes = self._known.host, target.untyped_storage().nbytes()

        def make() -> Any:
            with host.working():
                whole = host.blank(size_bytes)
                old = before.bytes()
                whole[: len(old)].copy_(old)
                return whole

        return Content(host, size_bytes, make, depth=before.depth + 1, draws=before.draws)

    def _without_effect(self, original: Callable[..., Any]) -> Callable[..., Any]:
        known = self._known
        tensor_type = self._torch.Tensor

        def kept(*arguments: Any, **options: Any) -> Any:
            tensors = [it for it in arguments if type(it) is tensor_type and it.is_cuda]
            before = [(it, known.attempt(known.content_of, it)) for it in tensors]
            result = original(*arguments, **options)
            for tensor, content in before:
                if content is not None:
                    known.attempt(known.keep, tensor, content)
            return result

        return kept

    def _content_after(
        self, original: Any, operator: str, target: Any, arguments: Any, options: Any
    ) -> Any:
        """The content of `target`'s storage after the write; None if it is not known."""
        known = self._known
        try:
            before = known.content_of(target)
            covers = operator in _OVERWRITES and target.nbytes == target.untyped_storage().nbytes()
            if before is None and not covers and not known.is_unset(target):
                return None
            if target.requires_grad or not known.can_hold(target):
                return None
            if self._operators.leaves_unset(operator):
                return None
            call = Call(
                *(known.host, original, known.argument(arguments[1:]), known.options(options)),
                is_random=self._operators.is_random(operator),
            )
            size_bytes = target.untyped_storage().nbytes()
            return call.written(None if covers else before, Geometry.of(target), size_bytes)
        except Exception:
            return None


def _has_tensor(value: Any) -> bool:
    if type(value) in (list, tuple):
        return any(_has_tensor(each) for each in value)
    return type(value) in (Shown, Blank)


def _variable_functions(torch: Any) -> dict[str, Any]:
    """The table in which C++ looks up the functions of `torch`: the dictionary of a C class."""
    (table,) = gc.get_referents(type(torch._C._VariableFunctions).__dict__)
    assert isinstance(table, dict)
    return table
