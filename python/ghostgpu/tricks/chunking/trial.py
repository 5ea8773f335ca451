"""A few samples go through a model together and in two halves, and what comes out is compared."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Callable, ContextManager, Optional

import torch

from ..refusal import LeftTraces, Refused
from ..surviving_oom_errors import is_out_of_memory
from .attributes import first_difference
from .batch import ALTERNATIVE, Batch
from .comparison import differs, rows_differ
from .escapes import GraphWatch, hooks_noted
from .findings import Attributes, Findings, Model
from .gradient_trial import GradientTrial, Results
from .loss_labels import weighting_of
from .losses import Weighting, candidates, combined, masks, padding_of
from .nested import Nested, flatten, is_plain
from .parameters import contents, versions
from .surroundings import AutocastState, RandomState
from .time_first import cut_sequence, lengths_noted
from .trial_state import TrialState, in_evaluation, is_anything, is_dropout


class Trial:
    """Tries one reading of a model's arguments; raises `Refused` if chunks would be wrong."""

    def __init__(
        self,
        model: Model,
        make: Callable[..., Any],
        arguments: Nested,
        batch: Batch,
        half: int,
        largest: int,
        known: Optional[Findings] = None,
    ) -> None:
        """`half`: how many samples a half has. `largest`: how many the largest chunk has.

        `known`: findings that are in doubt: losses can only be what they may be there.
        """
        self._model = model
        self._make = make
        self._arguments = arguments
        self._batch = batch
        self._half = half
        self._largest = largest
        self._known = known
        self._parameters = list(model.module.parameters())
        self._draws_always = False
        self._wanted = frozenset(
            at for at in arguments.tensors() if arguments.leaves[at].requires_grad
        )
        """Arguments that get gradients."""
        self._leaves = self._with_ignored_labels()

    def _with_ignored_labels(self) -> list[Any]:
        """Labels of which halves have different numbers, so that means over them differ, too."""
        leaves = [
            leaf.detach() if isinstance(leaf, torch.Tensor) else leaf
            for leaf in self._arguments.leaves
        ]
        if not is_of_transformers(self._model.module):
            return leaves  # elsewhere -100 need not be a label that is ignored
        for at, path in enumerate(self._arguments.paths):
            leaf = leaves[at]
            is_labels = path == "labels" and at in self._batch.cut and leaf.dim() == 2
            if is_labels and leaf.dtype == torch.int64 and leaf.shape[1] >= 4:
                leaves[at] = leaf.clamp(
                    min=0
                )  # where the first half had none, nothing would differ
                leaves[at][0, : leaf.shape[1] // 2] = -100
        return leaves

    def _pad_first_sample(self) -> None:
        """Have a sample with what may be padding, so that it shows whether that counts."""
        ignored = padding_of(self._model.module)
        if is_of_transformers(self._model.module):
            return
        for at in self._batch.cut:
            leaf = self._leaves[at]
            if leaf.dtype == torch.int64 and leaf.dim() == 2 and leaf.shape[1] >= 2:
                self._leaves[at] = leaf.clone()
                self._leaves[at][0, leaf.shape[1] // 2 :] = ignored

    def findings(self, needs_gradients: bool) -> Findings:
        """What is found; `needs_gradients`: whether the call is to be differentiated."""
        self._state = TrialState(self._model)
        with self._state.undone():
            fixed = self._run_first(needs_gradients)
            weightings, rivals, attributes = self._run_halves(needs_gradients)
        cut = frozenset(self._arguments.paths[at] for at in self._batch.cut)
        return Findings(cut, weightings, fixed, rivals, attributes)

    # One run with a graph, as the script would make it

    def _run_first(self, needs_gradients: bool) -> frozenset[str]:
        """Run a few samples with a graph; returns which results have none.

        Of copies of the arguments, since a model may write over these.
        """
        model = self._model
        reads = not model.is_rehearsed
        before = versions(self._parameters), contents(self._parameters, reads)
        starts: list[torch.Tensor] = []
        chunk = []
        for at, leaf in enumerate(self._batch.chunk(self._leaves, 0, self._half)):
            if not isinstance(leaf, torch.Tensor):
                chunk.append(leaf)
            elif at in self._wanted and needs_gradients:
                starts.append(leaf.detach().requires_grad_())
                chunk.append(starts[-1].clone())
            else:
                chunk.append(leaf.clone())
        arguments_before = _versions_of(chunk)
        with torch.set_grad_enabled(needs_gradients), hooks_noted() as hooks:
            watched = Attributes(model.module)
            tried = self._call(chunk)
        for path, old, new in zip(self._arguments.paths, arguments_before, _versions_of(chunk)):
            if old != new:
                raise self._refused(
                    f"it writes over {path}, and some samples go through it more than once"
                )
        if (versions(self._parameters), contents(self._parameters, reads)) != before:
            # There is no copy of them: they may be most of what is in memory.
            raise self._left_traces("it changes its own parameters while it runs")
        if any(one is not other for one, other in zip(model.module.parameters(), self._parameters)):
            raise self._refused("it replaces its own parameters while it runs")
        container = self._state.changed_container()
        if container is not None:
            raise self._refused(f"it changes {container}, where chunks would change it repeatedly")
        generator = self._state.moved_generator()
        if generator is not None:
            raise self._refused(f"it draws from {generator}, a generator of its own")
        hidden = self._state.buffers.written_unseen(reads)
        if hidden is not None:
            raise self._refused(f"it writes to the data of its buffer {hidden}")
        self._draws = not self._state.random.equals(RandomState.now(model.cards))
        left = watched.left_with_a_graph()
        if left is not None:
            raise self._refused(
                f"its forward pass leaves {left} behind, which the script may use in its loss"
            )
        fixed = frozenset(
            tried.paths[at] for at in tried.tensors() if not tried.leaves[at].requires_grad
        )
        self._read_losses(tried, chunk)
        if any(
            leaf.dim() == 0 and leaf.requires_grad and tried.paths[at] not in self._read
            for at, leaf in ((at, tried.leaves[at]) for at in tried.tensors())
        ):
            self._pad_first_sample()
        self._first_results = [
            leaf.detach() if isinstance(leaf, torch.Tensor) and self._draws else None
            for leaf in tried.leaves
        ]
        graph = GraphWatch([tried.leaves[at] for at in tried.tensors()])
        # What PyTorch derives from a forward pass treats samples like that does.
        self._has_own_backward = bool(hooks) or graph.has_functions
        del tried, chunk, hooks
        self._state.restore()
        if AutocastState.now().is_on:
            torch.clear_autocast_cache()
        self._require_own_leaves(graph, starts)
        if graph.is_held():
            raise self._left_traces(
                "its forward pass leaves a tensor with a graph behind outside of its results "
                "(in a list, a cache, a hook), which the script may use in its loss"
            )
        return fixed if needs_gradients else frozenset()

    def _require_own_leaves(self, graph: GraphWatch, starts: list[torch.Tensor]) -> None:
        known = {id(each) for each in [*self._parameters, *starts]}
        for leaf in graph.leaves:
            if id(leaf) in known:
                continue
            if any(not each.is_leaf for each in self._parameters):
                raise self._refused(
                    "it is called with other parameters than its own (torch.func.functional_call)"
                )
            raise self._refused(
                f"it uses a tensor with gradients, of the shape {list(leaf.shape)}, that is "
                "neither among its arguments nor among its parameters"
            )

    def _read_losses(self, tried: Nested, leaves: list[Any]) -> None:
        """What graphs tell of losses among the results."""
        self._read: dict[str, Weighting] = {}
        reads = not self._model.is_rehearsed
        for at in tried.tensors():
            loss = tried.leaves[at]
            if loss.dim() or loss.grad_fn is None:
                continue
            found = weighting_of(loss, self._arguments, leaves, self._batch.cut, reads)
            if found is not None:
                self._read[tried.paths[at]] = found

    # Runs of halves and of both together

    def _run_halves(
        self, needs_gradients: bool
    ) -> tuple[dict[str, Weighting], dict[str, tuple[Weighting, ...]], frozenset[str]]:
        half, module = self._half, self._model.module
        later = self._model.graph_later if needs_gradients else contextlib.nullcontext
        with self._modes(later):
            with torch.no_grad(), later():
                with lengths_noted(module) as of_half:
                    first, first_leaves, left_by_first = self._run(0, half)
                second, second_leaves, left_by_second = self._run(half, 2 * half)
                with lengths_noted(module) as of_whole:
                    whole, _, left_by_whole = self._run(0, 2 * half)
            if AutocastState.now().is_on:
                torch.clear_autocast_cache()
            layer = cut_sequence(of_half, of_whole)
            if layer is not None:
                raise self._refused(
                    f"the first dimension of its arguments is the time of sequences, not the "
                    f"batch: {layer or 'it'} takes time first"
                )
            weightings, rivals = self._compared(first, second, whole, [first_leaves, second_leaves])
            compares = not self._model.is_rehearsed
            for left in (left_by_second, left_by_whole):
                attribute = first_difference(left_by_first, left, compares)
                if attribute is not None:
                    raise self._refused(
                        f"it keeps {attribute} of the batch as an attribute, and that of a chunk "
                        "is another"
                    )
            if needs_gradients and self._has_own_backward:
                self._require_same_gradients(weightings)
        return weightings, rivals, frozenset(left_by_first)

    @contextlib.contextmanager
    def _modes(self, later: Callable[[], ContextManager[None]]) -> Iterator[None]:
        """What is random is compared as in evaluation: dropout does not depend on samples.

        But as little as possible, since other layers may treat samples together in training.
        """
        if not self._draws:
            yield
            return
        with torch.no_grad(), later():
            self._require_repeated()
            with in_evaluation(self._model.module, is_dropout):
                self._run(0, self._half)
                still_draws = not self._state.random.equals(RandomState.now(self._model.cards))
        with in_evaluation(self._model.module, is_anything if still_draws else is_dropout):
            if still_draws:
                with torch.no_grad(), later():
                    self._run(0, self._half)
                self._draws_always = not self._state.random.equals(
                    RandomState.now(self._model.cards)
                )
            yield

    def _require_repeated(self) -> None:
        """The first run, made again, must have the same results."""
        before, self._first_results = self._first_results, []
        again, _, _ = self._run(0, self._half)
        for path, one, other in zip(again.paths, before, again.leaves):
            if one is None or one.shape != other.shape or not one.numel():
                continue
            rows = [each.reshape(1) if each.dim() == 0 else each for each in (one, other)]
            differ = rows_differ(rows[0], rows[1:], self._tolerance(one))
            if not self._model.is_rehearsed and bool(differ):
                raise self._refused(
                    f"{path} is another when it is computed again from the same state"
                )

    def _run(self, begin: int, end: int) -> tuple[Nested, list[Any], dict[str, Any]]:
        """The results of some samples, their arguments, and what attributes are left."""
        self._state.restore()
        chunk = self._batch.chunk(self._leaves, begin, end)
        return self._call(chunk), chunk, self._state.attributes.changed()

    def _call(self, chunk: list[Any]) -> Nested:
        arguments, options = self._arguments.with_leaves(chunk)
        return flatten(self._make(*arguments, **options), "output")

    # Results

    def _compared(
        self, first: Nested, second: Nested, whole: Nested, leaves: list[list[Any]]
    ) -> tuple[dict[str, Weighting], dict[str, tuple[Weighting, ...]]]:
        if not first.paths == second.paths == whole.paths:
            raise self._refused("what it returns depends on the number of samples")
        weightings: dict[str, Weighting] = {}
        rivals: dict[str, tuple[Weighting, ...]] = {}
        for at, path in enumerate(whole.paths):
            all_of_them, *parts = (each.leaves[at] for each in (whole, first, second))
            if not isinstance(all_of_them, torch.Tensor):
                if differs(parts[0], all_of_them) and is_plain(all_of_them):
                    raise self._refused(
                        f"{path} is {parts[0]} for {self._half} samples and {all_of_them} for "
                        f"{2 * self._half}"
                    )
            elif all_of_them.dim() == 0:
                weightings[path], others = self._weighting(path, all_of_them, parts, leaves)
                if others:
                    rivals[path] = others
            else:
                self._require_same_rows(path, all_of_them, parts)
        return weightings, rivals

    def _require_same_rows(self, path: str, whole: torch.Tensor, parts: list[torch.Tensor]) -> None:
        half = self._half
        rows = [part.shape[0] if part.dim() else 0 for part in parts]
        has_rows = rows[0] == rows[1] and sum(rows) == whole.shape[0] and rows[0] % half == 0
        other = next((part for part in parts if part.shape[1:] != whole.shape[1:]), None)
        if not has_rows or other is not None:
            shape = list((parts[0] if other is None else other).shape)
            raise self._refused(
                f"{path} has the shape {shape} for {half} samples and "
                f"{list(whole.shape)} for {2 * half}, so it has no row for each sample"
            )
        if not whole.numel():
            return
        differ = rows_differ(whole, parts, self._tolerance(whole))
        if not self._model.is_rehearsed and bool(differ):
            if self._draws_always:
                raise self._refused(
                    f"it draws random numbers in eval(), too, so {path} does not tell whether "
                    "samples depend on each other"
                )
            raise self._refused(
                f"rows of {path} depend on the other samples of the batch, or the first "
                "dimension of its arguments is not the batch"
            )

    def _weighting(
        self,
        path: str,
        whole: torch.Tensor,
        parts: list[torch.Tensor],
        leaves: list[list[Any]],
    ) -> tuple[Weighting, tuple[Weighting, ...]]:
        """What this loss is the mean of, and what else it may be as far as these samples tell."""
        read = self._read.get(path)
        padding = padding_of(self._model.module)
        likely = [
            *([read] if read else []),
            *candidates(self._arguments, self._batch.cut, padding),
        ]
        if not whole.is_floating_point():
            likely = [] if whole.dtype == torch.bool else [Weighting("sum")]
        if self._known is not None and path in self._known.rivals:
            likely = [self._known.weightings[path], *self._known.rivals[path]]
        if self._model.is_rehearsed and likely:
            return likely[0], ()
        if whole.is_floating_point() and self._known is None:
            tried = self._batch.chunk(self._leaves, 0, 2 * self._half)
            likely += masks(self._arguments, tried, self._batch.cut)
        off = [self._distance(each, whole, parts, leaves) for each in likely]
        size = abs(float(whole))
        bound = self._tolerance(whole) / 50 * max(1e-3, size) if whole.is_floating_point() else 0
        agreeing = [each for each, distance in zip(likely, off) if distance <= bound]
        if not agreeing:
            raise self._refused(
                f"{path} is one number for all samples, and neither their sum nor a mean over "
                "samples or labels"
            )
        if read is not None and read in agreeing:
            return read, ()
        # Among those that agree, the first, which is the one that knows of ignored labels.
        rounding = 16 * torch.finfo(whole.dtype).eps * size if whole.is_floating_point() else 0
        least = min(off)
        best = next(each for each, one in zip(likely, off) if one <= least + rounding)
        return best, tuple(each for each in agreeing if each != best)

    def _distance(
        self,
        weighting: Weighting,
        whole: torch.Tensor,
        parts: list[torch.Tensor],
        leaves: list[list[Any]],
    ) -> float:
        counts = [weighting.count(self._arguments, chunk, self._half) for chunk in leaves]
        total = weighting.total(counts)
        weights = [weighting.weight(count, total, whole) for count in counts]
        distance = float((combined(parts, weights) - whole).abs())
        return distance if distance == distance else float("inf")

    # Gradients

    def _require_same_gradients(self, weightings: dict[str, Weighting]) -> None:
        model = self._model
        parameters = [each for each in self._parameters if each.requires_grad]
        # No more samples than a chunk has where that is possible: memory is made for these.
        half = max(1, min(self._half, self._largest // 2))
        totals = {
            path: each.count(
                self._arguments, self._batch.chunk(self._leaves, 0, 2 * half), 2 * half
            )
            for path, each in weightings.items()
        }

        def run(begin: int, end: int, leaves: Sequence[Any]) -> Results:
            self._state.restore()
            chunk = self._batch.chunk(list(leaves), begin, end)
            with torch.enable_grad(), model.stand_ins.in_place(parameters):
                found = self._call(chunk)
            results: Results = []
            for at in found.tensors():
                path, result = found.paths[at], found.leaves[at]
                if not result.requires_grad:
                    continue
                weight = None
                if path in weightings:
                    count = weightings[path].count(self._arguments, chunk, end - begin)
                    weight = weightings[path].weight(count, totals[path], result)
                results.append((result, weight))
            return results

        @contextlib.contextmanager
        def around() -> Iterator[None]:
            with model.own_backward(), AutocastState.now().switched_off():
                yield

        stand_ins = model.stand_ins.of(parameters)
        trial = GradientTrial(run, around, stand_ins, self._leaves, self._wanted)
        if AutocastState.now().is_on:
            torch.clear_autocast_cache()
        tolerance = 10 * self._tolerance(self._parameters[0])
        problem = None
        try:
            problem = trial.problem(half, tolerance, not model.is_rehearsed)
        except RuntimeError as error:
            # Chunks may be smaller than what was tried.
            if not is_out_of_memory(torch, error):
                raise
        finally:
            if AutocastState.now().is_on:
                torch.clear_autocast_cache()
        if problem is not None:
            raise self._refused(problem)

    def _tolerance(self, tensor: torch.Tensor) -> float:
        if AutocastState.now().is_on or tensor.dtype in (torch.float16, torch.bfloat16):
            return 5e-2
        if tensor.dtype == torch.float64:
            return 1e-8
        return 1e-2 if tensor.is_cuda else 1e-4  # TF32

    def _left_traces(self, reason: str) -> LeftTraces:
        refused = self._refused(reason)
        return LeftTraces(refused.reason, refused.alternative)

    def _refused(self, reason: str) -> Refused:
        return Refused(f"{self._model.name} cannot be run in chunks: {reason}.", ALTERNATIVE)


def is_of_transformers(module: torch.nn.Module) -> bool:
    """Whether labels that do not count are known to be -100."""
    return type(module).__module__.startswith("transformers.")


def _versions_of(leaves: list[Any]) -> list[int]:
    return [
        leaf._version if isinstance(leaf, torch.Tensor) and not leaf.is_inference() else 0
        for leaf in leaves
    ]
