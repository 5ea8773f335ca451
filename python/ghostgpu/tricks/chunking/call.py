"""One call of a model in chunks: the first pass, and its repetition in backward.

The first pass keeps the arguments, and the graph of the last chunk where that costs no memory. The
backward pass gets the gradients of the results, goes through that graph, computes one other chunk
after the other again, now with a graph, and sums their gradients. Where the model computes the loss
itself, the first pass computes these sums, and nothing is repeated (`at_once`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Callable, Optional

import torch
from torch import nn

from ..accumulation_weights import Reduction
from ..refusal import Refused
from ..surviving_oom_errors import first_line, given_up, is_out_of_memory, release
from .at_once import have_gradients, is_in_float16, scaled
from .attributes import PlainAttributes, attributes_set
from .batch import ALTERNATIVE, Batch, bounds
from .findings import Findings, Model
from .nested import Nested, flatten
from .outputs import Outputs
from .parameters import taken_gradients, versions
from .surroundings import (
    AutocastState,
    Buffers,
    BuffersRead,
    ModuleModes,
    RandomState,
    buffers_set,
)

_LOSS_COPIES = 4
"""How many times as large as the results a loss may be: they, two results of its own, a gradient.

Of a model that computes its loss itself there are only the results.
"""


class Call:
    """What is known about a call between its first pass and the end of its backward pass."""

    def __init__(
        self,
        model: Model,
        make: Callable[..., Any],
        arguments: Nested,
        batch: Batch,
        findings: Findings,
        chunks: int,
        parameters: list[nn.Parameter],
        has_buffers_broadcast: bool = False,
    ) -> None:
        """`has_buffers_broadcast`: DDP writes to buffers in every call, mostly what they hold."""
        self.model = model
        self.batch = batch
        self.chunks = chunks
        self.parameters = [each for each in parameters if each.requires_grad]
        """Those that get gradients."""
        self._all_parameters = parameters
        self._make = make
        self._form = arguments.without_tensors()
        self._findings = findings
        self._autocast = AutocastState.now()
        self._modes: Optional[ModuleModes] = None
        self._versions: list[int] = []
        self._buffers: dict[str, torch.Tensor] = {}
        self._has_buffers_broadcast = has_buffers_broadcast
        self._buffers_read: Optional[BuffersRead] = None
        self._attributes_before: Optional[PlainAttributes] = None
        self._random: list[RandomState] = []
        self._draws = False
        self._bounds: list[tuple[int, int]] = []
        self._outputs: Optional[Outputs] = None
        self._wanted = frozenset(
            at for at in arguments.tensors() if arguments.leaves[at].requires_grad
        )
        """Arguments that get a gradient: inside of autograd's functions nothing tells."""
        self._graph: Optional[_Graph] = None
        self._gradients_at_once: Optional[list[Optional[torch.Tensor]]] = None
        """Of the parameters, for a loss whose gradient is 1."""
        self._had_gradients = have_gradients(self.parameters)
        self._tries_again = True
        self.form: Optional[Nested] = None
        self.positions: list[int] = []

    @property
    def name(self) -> str:
        return self.model.name

    # The first pass

    def run(self, leaves: list[Any], is_training: bool) -> list[torch.Tensor]:
        """The results of all chunks together."""
        start = RandomState.now(self.model.cards)
        self._tries_again = True
        while True:
            buffers = Buffers(self.model.module, self.model.moving)
            attributes = self._attributes()
            trouble: Optional[str] = None
            try:
                return self._run(leaves, buffers, attributes, is_training)
            except Refused:
                # The model may be called as it is instead, which must draw the same numbers.
                buffers.restore()
                attributes.restore()
                start.restore()
                raise
            except RuntimeError as error:
                if not self.model.survives or not is_out_of_memory(torch, error):
                    raise
                trouble = first_line(error)
            # Out here nothing holds the frames of the failed attempt any more.
            self._graph = self._outputs = None
            buffers.restore()
            attributes.restore()
            start.restore()
            self._grow("forward", trouble)

    def _attributes(self) -> PlainAttributes:
        return PlainAttributes(self.model.module, self._findings.attributes)

    def _run(
        self,
        leaves: list[Any],
        buffers: Buffers,
        attributes: PlainAttributes,
        is_training: bool,
    ) -> list[torch.Tensor]:
        model = self.model
        self._bounds = bounds(self.batch.samples, self.chunks)
        self._random = []
        outputs = Outputs(model.name, self.batch.samples, self._findings.weightings)
        before = versions(self._all_parameters)
        is_whole = len(self._bounds) == 1
        at_once = is_training and not is_whole and self._may_differentiate_at_once()
        with self._differentiating(leaves) if at_once else contextlib.nullcontext() as total:
            for begin, end in self._bounds:
                self._random.append(RandomState.now(model.cards))
                if self._random[1:]:
                    buffers.restore()
                    attributes.restore()
                chunk = self.batch.chunk(leaves, begin, end)
                is_last = end == self.batch.samples
                may_keep = is_training and is_last and not at_once
                keeps_graph = may_keep and (is_whole or self._may_keep_graph(outputs))
                if at_once:
                    value = self._run_at_once(chunk, end - begin, total)
                elif keeps_graph:
                    value = self._run_and_keep_graph(chunk)
                else:
                    value = self._run_without_graph(chunk, is_training)
                self._require_same_buffers(buffers)
                outputs.add(value, end - begin, self._form, chunk, is_whole and keeps_graph)
                del value
            if versions(self._all_parameters) != before:
                raise self._refused("it changes its own parameters while it runs")
            self.form, self.positions, tensors = outputs.finished()
        self._versions = before
        self._draws = not self._random[0].equals(RandomState.now(model.cards))
        self._buffers = buffers.before_moving()
        if is_training and not self._has_buffers_broadcast:
            self._buffers_read = BuffersRead(model.module, self._buffers)
        self._attributes_before = attributes
        model.moving = (model.moving or set()) | set(self._buffers)
        self._outputs = outputs
        if self._autocast.is_on:
            # Weights that were cast without a graph must not be found by a pass with one.
            torch.clear_autocast_cache()
        return tensors

    def _run_without_graph(self, chunk: list[Any], is_training: bool) -> Any:
        arguments, options = self._form.with_leaves(chunk)
        with self.model.graph_later() if is_training else contextlib.nullcontext():
            return self._make(*arguments, **options)

    def _require_same_buffers(self, buffers: Buffers) -> None:
        """Look at what a chunk has left in buffers: each must leave the same."""
        model = self.model
        differing = buffers.note(model.moving is None and not model.is_rehearsed)
        if differing is not None:
            raise self._refused(
                f"it keeps statistics of the batch in {differing}, and those of chunks are others"
            )
        if buffers.unexpected is not None:
            raise self._refused(f"it changed its buffer {buffers.unexpected} for the first time")

    # The first pass, if it differentiates as well

    def _may_differentiate_at_once(self) -> bool:
        is_possible = self._findings.only_loss is not None and not self._wanted
        is_safe = is_possible and not is_in_float16(self._all_parameters, self._autocast)
        return is_safe and self.model.at_once.may_begin(self.parameters)

    @contextlib.contextmanager
    def _differentiating(self, leaves: list[Any]) -> Iterator[Any]:
        """Gives what the loss of the whole batch is divided by; keeps the sums of gradients."""
        weighting = self._findings.weightings[self._findings.only_loss or ""]
        stand_ins = self.model.stand_ins.of(self.parameters)
        if self._autocast.is_on:
            torch.clear_autocast_cache()  # the stand-ins are cast anew, once for all chunks
        try:
            with self.model.stand_ins.in_place(self.parameters):
                yield weighting.count(self._form, leaves, self.batch.samples)
        except BaseException:
            taken_gradients(stand_ins)
            raise
        self._gradients_at_once = taken_gradients(stand_ins)
        self.model.at_once.begun()

    def _run_at_once(self, chunk: list[Any], samples: int, total: Any) -> Any:
        with torch.enable_grad():
            value = self._with_graph(chunk)
        path = self._findings.only_loss or ""
        weighting = self._findings.weightings[path]
        results = flatten(value, "output")
        loss = results.leaves[results.paths.index(path)]
        if loss.requires_grad:
            share = weighting.weight(weighting.count(self._form, chunk, samples), total, loss)
            with self.model.own_backward(), self._autocast.switched_off():
                torch.autograd.backward(loss, share)
        return value

    def drop_gradients(self) -> None:
        """Let go of gradients that were computed at once: backward repeats the chunks."""
        self._gradients_at_once = None

    # The first pass, if the script's loss is still to come

    def _may_keep_graph(self, outputs: Outputs) -> bool:
        """Whether the graph of the last chunk can wait for backward without raising the peak.

        Its backward pass comes first, so it saves one repetition. But it is there while the script
        computes its loss of all results, where a repetition would come later, when what the loss
        took is gone and the sums of gradients are there. So there is room for as much as these.
        """
        if self.model.survives:
            return False  # a repetition can be made in more chunks; the script's loss cannot
        copies = 1 if self._findings.weightings else _LOSS_COPIES
        gradients = sum(each.numel() * each.element_size() for each in self.parameters)
        return copies * outputs.bytes_of_rows <= gradients

    def _run_and_keep_graph(self, chunk: list[Any]) -> Any:
        if self._autocast.is_on:
            torch.clear_autocast_cache()  # the stand-ins are cast anew
        self.model.stand_ins.of(self.parameters)
        inputs = self._with_gradients(chunk)
        with torch.enable_grad(), self.model.stand_ins.in_place(self.parameters):
            value = self._with_graph(inputs)
        self._graph = _Graph(flatten(value, "output"), inputs)
        return value

    def _with_graph(self, inputs: list[Any]) -> Any:
        arguments, options = self._form.with_leaves(inputs)
        return self._make(*arguments, **options)

    def drop_graph(self) -> None:
        """Let the kept graph go: backward repeats that chunk like the others."""
        if len(self._bounds) > 1:
            self._graph = None

    def _with_gradients(
        self, leaves: list[Any], shared: Optional[dict[int, torch.Tensor]] = None
    ) -> list[Any]:
        """The same leaves, as beginnings of a graph of their own."""
        beginnings = list(leaves)
        for at in self._wanted:
            known = (shared or {}).get(at)
            beginnings[at] = leaves[at].detach().requires_grad_() if known is None else known
        return beginnings

    def note_surroundings(self) -> None:
        """Keep what the repetition needs, in a call that is going to be differentiated."""
        self._modes = ModuleModes(self.model.module)

    def is_differentiable(self, position: int) -> bool:
        """Whether gradients flow through this leaf of the result."""
        assert self.form is not None
        leaf = self.form.leaves[position]
        can = leaf.is_floating_point() or leaf.is_complex()
        return can and self.form.paths[position] not in self._findings.without_gradient

    def reduction(self, number: int, leaves: list[Any]) -> Optional[Reduction]:
        """What the result of this number is, if it is a loss."""
        assert self.form is not None
        weighting = self._findings.weightings.get(self.form.paths[self.positions[number]])
        return None if weighting is None else weighting.reduction(self._form, leaves)

    # The backward pass

    def gradients(
        self, leaves: list[Any], outer: dict[int, torch.Tensor]
    ) -> tuple[dict[int, torch.Tensor], list[Optional[torch.Tensor]]]:
        """Gradients of arguments by position and of parameters, from those of the results."""
        if versions(self._all_parameters) != self._versions:
            raise RuntimeError(
                f"a parameter of {self.name} was changed in place after its forward pass and "
                "before the backward pass of that, which would compute other activations now"
            )
        at_once, self._gradients_at_once = self._gradients_at_once, None
        self.model.at_once.note_backward(self.parameters, self._had_gradients)
        if at_once is not None:
            assert self.form is not None
            if [self.form.paths[at] for at in outer] == [self._findings.only_loss]:
                self.model.at_once.used()
                (gradient,) = outer.values()
                return {}, scaled(at_once, gradient)
            self.model.at_once.give_up()
            del at_once
        self._require_repeatable()
        now = RandomState.now(self.model.cards)
        offloads = False
        self._tries_again = True
        try:
            while True:
                trouble: Optional[str] = None
                try:
                    return self._gradients(leaves, outer, offloads)
                except RuntimeError as error:
                    if not self.model.survives or not is_out_of_memory(torch, error):
                        raise
                    trouble = first_line(error)
                self._graph = None
                for stand_in in self.model.stand_ins.of(self.parameters):
                    stand_in.grad = None
                if not self._draws:
                    self._grow("backward", trouble)
                    continue
                # Other chunks would draw other dropout masks than those behind the loss. So these
                # chunks stay, and what they keep for backward goes to the host instead.
                if offloads:
                    raise self._given_up("backward", trouble)
                self.model.grow(self.batch.samples, "backward", trouble)
                release(self.model.cards)
                offloads = True
        finally:
            self._graph = None
            now.restore()

    def _require_repeatable(self) -> None:
        """Repeated chunks must find the buffers that the loss was computed with."""
        is_all_there = self._graph is not None and len(self._bounds) == 1
        if is_all_there or self._buffers_read is None:
            return
        written = self._buffers_read.written()
        if written is not None:
            raise Refused(
                f"{self.name} cannot be run in chunks: its buffer {written} is written to between "
                "the forward pass and backward, which computes chunks again.",
                "write to it after backward(); or leave chunking out for this model",
            )

    def _gradients(
        self, leaves: list[Any], outer: dict[int, torch.Tensor], offloads: bool
    ) -> tuple[dict[int, torch.Tensor], list[Optional[torch.Tensor]]]:
        model = self.model
        assert self._modes is not None and self._outputs is not None
        kept, self._graph = self._graph, None
        if kept is not None and kept.was_changed():
            kept = None  # the script has written over the results
        stand_ins = model.stand_ins.of(self.parameters)
        inner: dict[int, torch.Tensor] = {}
        shared = {
            at: leaves[at].detach().requires_grad_() if kept is None else kept.inputs[at]
            for at in self._wanted - self.batch.cut
        }
        pieces = bounds(self.batch.samples, self.chunks)
        is_repeated = pieces == self._bounds
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._modes.restored())
            stack.enter_context(model.stand_ins.in_place(self.parameters))
            # The last one first, whose graph may be there.
            for index, (begin, end) in reversed(list(enumerate(pieces))):
                with self._state_before():
                    if kept is None:
                        chunk = self.batch.chunk(leaves, begin, end)
                        inputs = self._with_gradients(chunk, shared)
                        if is_repeated:
                            self._random[index].restore()
                        graph = self._repeat(inputs, offloads)
                    else:
                        graph, kept = kept, None
                    self._differentiate(graph, outer, begin, end)
                for at in self._wanted:
                    gradient = graph.inputs[at].grad
                    if gradient is None:
                        continue
                    if at in self.batch.cut:
                        if at not in inner:
                            inner[at] = torch.zeros_like(leaves[at])
                        inner[at][begin:end] = gradient
                    else:
                        inner[at] = gradient  # of one leaf for all chunks: the sum so far
                del graph
        return inner, taken_gradients(stand_ins)

    @contextlib.contextmanager
    def _state_before(self) -> Iterator[None]:
        """Buffers and attributes as they were before the first pass."""
        module = self.model.module
        with buffers_set(module, self._buffers), attributes_set(module, self._attributes_before):
            yield

    def _repeat(self, inputs: list[Any], offloads: bool) -> _Graph:
        keeping: Any = torch.autograd.graph.save_on_cpu() if offloads else contextlib.nullcontext()
        with torch.enable_grad(), self._autocast.restored(), keeping:
            value = self._with_graph(inputs)
        return _Graph(flatten(value, "output"), inputs)

    def _differentiate(
        self, graph: _Graph, outer: dict[int, torch.Tensor], begin: int, end: int
    ) -> None:
        roots: list[torch.Tensor] = []
        seeds: list[torch.Tensor] = []
        outputs = self._outputs
        assert outputs is not None
        for at, gradient in outer.items():
            root = graph.results.leaves[at]
            if not root.requires_grad:
                continue
            if root.dim() == 0:
                weight = outputs.weight_of(at, graph.inputs, self._form, end - begin)
                seeds.append(gradient * weight)
            else:
                first, last = outputs.rows_of(at, begin, end)
                seeds.append(gradient[first:last])
            roots.append(root)
        if roots:
            torch.autograd.backward(roots, seeds)

    # Running out of memory

    def _grow(self, where: str, trouble: str) -> None:
        if self.chunks < self.batch.samples:
            self.chunks = self.model.grow(self.batch.samples, where, trouble, self.chunks)
        elif self._tries_again:
            # Once more: what the failed attempt held, or fragmentation, may have been the reason,
            # or gradients beside the results.
            self._tries_again = False
            self.model.at_once.give_up()
        else:
            raise self._given_up(where, trouble)
        release(self.model.cards)

    def _given_up(self, where: str, trouble: str) -> RuntimeError:
        samples, chunks = self.batch.samples, self.chunks
        held = ""
        if self.model.cards:
            card = self.model.cards[0]
            held = f" {torch.cuda.memory_allocated(card):,} bytes are in use outside of this call."
        what = (
            "not even one sample at a time fits"
            if chunks >= samples
            else f"it did not fit in {chunks} chunks, even with what they keep on the host"
        )
        return given_up(
            torch,
            f"{self.name} ran out of memory in {where} with a batch of {samples}: {what}.{held} "
            f"The last error was: {trouble}",
        )

    def _refused(self, reason: str) -> Refused:
        return Refused(f"{self.name} cannot be run in chunks: {reason}.", ALTERNATIVE)


class _Graph:
    """A chunk's results with their graph, and the arguments that it begins with."""

    def __init__(self, results: Nested, inputs: list[Any]) -> None:
        self.results = results
        self.inputs = inputs
        self._versions = self._present()

    def _present(self) -> list[int]:
        return [self.results.leaves[at]._version for at in self.results.tensors()]

    def was_changed(self) -> bool:
        return self._versions != self._present()


class ChunkedFunction(torch.autograd.Function):
    """Stands in autograd's graph where the model's own operations would."""

    @staticmethod
    def forward(ctx: Any, call: Call, leaves: list[Any], *tensors: Any) -> Any:
        results = call.run(leaves, is_training=True)
        at_tensors = [at for at, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        ctx.call = call
        ctx.at_tensors = at_tensors
        ctx.others = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        ctx.save_for_backward(*tensors[: len(at_tensors)])
        ctx.set_materialize_grads(False)
        fixed = [
            result for result, at in zip(results, call.positions) if not call.is_differentiable(at)
        ]
        ctx.mark_non_differentiable(*fixed)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        call: Call = ctx.call
        if torch.is_grad_enabled():
            raise Refused(
                f"{call.name} cannot be run in chunks: the script differentiates its gradients "
                "(create_graph=True).",
                "leave chunking out for this model",
            )
        leaves = _leaves(ctx)
        outer = {
            at: gradient for at, gradient in zip(call.positions, gradients) if gradient is not None
        }
        inner, of_parameters = call.gradients(leaves, outer)
        of_leaves = [inner.get(at) for at in ctx.at_tensors]
        return (None, None, *of_leaves, *of_parameters)

    @staticmethod
    def reduction(node: Any, output: int) -> Optional[Reduction]:
        """What a loss among the results is, for whoever accumulates it (`accumulation_weights`)."""
        call: Call = node.call
        return call.reduction(output, _leaves(node))


def _leaves(node: Any) -> list[Any]:
    """The arguments of a call, which autograd keeps."""
    leaves = list(node.others)
    for at, tensor in zip(node.at_tensors, node.saved_tensors):
        leaves[at] = tensor
    return leaves
