"""Passes over a `DataLoader`, cut in the middle, never at their ends.

The script gets the first batches of a pass and the last ones. In between, a batch is handed on if
its size is new or if memory grows from batch to batch; the others are drawn and dropped. If drawing
takes too long, or all batches have one size, everything up to the last batches is skipped without
being loaded. A pass that takes little time is not cut; it may take longer if its batches differ in
size, or if something is done only from a later step on.
"""

from __future__ import annotations

import dis
import sys
import time
from types import FrameType
from typing import TYPE_CHECKING, Any, Callable

from ..guard import quietly
from .batch_shapes import Shape, elements, shape_of
from .card_memory import CardMemory
from .extent import Extent
from .step_conditions import StepConditions

if TYPE_CHECKING:
    from .coverage import Coverage

MOST_SHAPES = 16
"""Up to this many different sizes are handed on; then only a new largest or smallest one."""

MOST_WITHOUT_STEP = 256
"""How many batches are handed on while waiting for the very first optimizer step."""

FEWEST_WITHOUT_STEP = 8
"""The least for later passes; they wait for twice as many batches as a step took before."""

SCAN_SHARE = 0.15
"""Share of the budget for drawing batches just to see their sizes."""

ALIKE_SHARE = 0.025
"""The same once `ALIKE_BATCHES` batches had the same size."""

_LONGEST = 10_000_000
"""Samplers that never end have some huge length: more batches than any epoch has."""

_BETWEEN_LOOKS = 1024
"""How many batches are skipped between two looks at the clock."""

ALIKE_BATCHES = 256


class BatchSizes:
    """The batch sizes seen at one place of the script."""

    def __init__(self) -> None:
        self.shapes: dict[Shape, int] = {}
        self.largest: Shape | None = None
        self.smallest: Shape | None = None

    def is_new(self, shape: Shape) -> bool:
        """Whether a batch of this size may show something that earlier ones did not."""
        if self.largest is None or self.smallest is None:
            return True
        size = elements(shape)
        if size > elements(self.largest) or size < elements(self.smallest):
            return True
        return shape not in self.shapes and len(self.shapes) < MOST_SHAPES

    def note(self, shape: Shape) -> None:
        """A batch of this size was handed on."""
        if len(self.shapes) < MOST_SHAPES or shape in self.shapes:
            self.shapes[shape] = self.shapes.get(shape, 0) + 1
        if self.largest is None or elements(shape) > elements(self.largest):
            self.largest = shape
        if self.smallest is None or elements(shape) < elements(self.smallest):
            self.smallest = shape


class ShortenedPass:
    """The batches of one pass, without those that show nothing new."""

    def __init__(self, coverage: Coverage, loader: Any, batches: Any, place: Place) -> None:
        self._coverage = coverage
        self._torch = coverage.torch
        self._batches = batches
        self.place = place
        self.length = _length(loader)
        place.is_uniform = _is_uniform(self._torch, loader)
        place.conditions.begin_pass()
        self._sampler = _CountedSampler.put_into(batches, self.length)
        self._memory = CardMemory(self._torch)
        self._steps_before = coverage.progress.steps
        self._began = coverage.clock()
        self._pace = _Pace()
        self._is_worth_its_time: dict[bool, bool] = {}
        """Whether the pass is not cut, decided for batches of one size and for varying ones."""
        self._whole_until: int | None = None
        """How many batches are handed on because of what is done only at some step; None until
        the pass could be cut."""
        self._full_shape: Shape | None = None
        """The size of the first batch that was not the last of the pass."""
        self._varies = False
        """Whether the batches differ in size, apart from the last one."""
        self._drawn = 0
        self._jumped_at: int | None = None
        self._jumped_over = 0
        self.handed_on = 0
        self._has_ended = False
        self.is_endless = False
        """Whether the data has no known length and the script calls `next` itself: it does not
        expect the data to end."""

    def __iter__(self) -> ShortenedPass:
        return self

    def __getattr__(self, name: str) -> Any:
        # Frameworks use attributes of PyTorch's iterator beyond the iterator protocol.
        return getattr(self._batches, name)

    def __next__(self) -> Any:
        caller = sys._getframe(1)
        may_be_endless = self.length is None or self.length > _LONGEST
        if may_be_endless and not _is_in_for_loop(caller):
            self.length, self.is_endless = None, True
        self._memory.look()
        if self._coverage.shortens and not self.place.is_evaluation:
            quietly(self.place.conditions.look)(caller)
        self._coverage.progress.begin()
        # After a failure with shortened passes, passes are whole, even if nothing new comes.
        may_end = self._coverage.shortens and not self._coverage.in_lockstep()
        may_end &= not self.is_endless
        if may_end and self._coverage.progress.is_in_a_hurry and self._has_enough_for_a_step():
            self._end(is_complete=False)
            raise StopIteration
        while True:
            batch, index = self._draw()
            shape = shape_of(self._torch, batch)
            if not self._is_cut or self._is_wanted(index, shape):
                return self._hand_on(batch, index, shape)
            self.place.skipped += 1

    def _has_enough_for_a_step(self) -> bool:
        # Without a step, nobody would ask whether the script can be ended.
        is_training = not self.place.is_evaluation
        return self.handed_on >= (self._coverage.batches_per_step if is_training else 1)

    def _draw(self) -> tuple[Any, int]:
        is_scanning = self._is_cut and self._jumped_at is None and not self._is_needed_anyway()
        if is_scanning and not self._coverage.may_scan(self.place, self._can_jump):
            if not self._jump():
                self._coverage.note_endless(self.place, self._drawn)
                self._end(is_complete=False)
                raise StopIteration
            is_scanning = False
        began = self._coverage.clock()
        try:
            batch = next(self._batches)
        except StopIteration:
            self._end(is_complete=True)
            raise
        if is_scanning:
            self.place.scan_seconds += self._coverage.clock() - began
        index = self._drawn
        if self._jumped_at is not None and index >= self._jumped_at:
            index += self._jumped_over
        self._drawn += 1
        return batch, index

    @property
    def _can_jump(self) -> bool:
        return self._sampler is not None

    def _jump(self) -> bool:
        """Skip everything up to the last batches; False if that is not possible."""
        if self._sampler is None or self.length is None:
            return False
        # Batches that workers have already begun to load still arrive.
        self._jumped_at = self._sampler.taken
        ends = self._coverage.clock() + ALIKE_SHARE * self._coverage.progress.budget_seconds
        self._jumped_over = self._sampler.skip_to(
            self._earliest_of_the_last(self.length), lambda: self._coverage.clock() > ends
        )
        if self._sampler.taken < self._earliest_of_the_last(self.length):
            self._jumped_at = None
            return False
        self.place.not_looked_at = max(self.place.not_looked_at, self._jumped_over)
        return True

    @property
    def _extent(self) -> Extent:
        return self._coverage.progress.extent

    @property
    def steps(self) -> int:
        """Optimizer steps since the pass began."""
        return self._coverage.progress.steps - self._steps_before

    @property
    def _is_cut(self) -> bool:
        # A pass that does not use the card is not cut: its data may decide what the card gets.
        is_short = self.length is not None and self.length <= self._extent.whole_batches
        if self.length is None and (self.is_endless or self._coverage.in_lockstep()):
            return False
        return self._coverage.shortens and self._memory.was_used and not is_short

    def _is_first(self) -> bool:
        if self.place.is_evaluation:
            return self.handed_on < self._extent.first_evaluations
        steps = self.steps
        if steps == 0:
            return self.handed_on < self._coverage.most_without_step
        # Where a step takes many batches, two steps are enough.
        first = self._extent.first_steps
        return steps < (first if self.handed_on <= 4 * steps else min(first, 2))

    def _is_wanted(self, index: int, shape: Shape) -> bool:
        is_new = self.place.sizes.is_new(shape) and not self._coverage.in_lockstep()
        if self._is_needed_anyway() or is_new:
            return True
        return self.length is not None and self._is_among_the_last(index, self.length)

    def _is_among_the_last(self, index: int, length: int) -> bool:
        """Whether this is one of the last batches, which are handed on.

        Scripts that accumulate gradients count the batches they get. The last batches begin early
        enough for accumulation windows to end at the same batches as in the whole pass.
        """
        if index >= length - self._extent.last_batches:
            return True
        is_aligned = (index - self.handed_on) % self._coverage.batches_per_step == 0
        return is_aligned and index >= self._earliest_of_the_last(length)

    def _earliest_of_the_last(self, length: int) -> int:
        return length - self._extent.last_batches - (self._coverage.batches_per_step - 1)

    def _is_needed_anyway(self) -> bool:
        """Whether the next batch is handed on regardless of its size."""
        if self._is_first():
            return True
        if self._coverage.in_lockstep():
            return False
        left = None if self.length is None else self.length - self._drawn
        if self._is_whole(left) or self._awaits_condition(left):
            return True
        if not self._memory.grows_relevantly(left):
            if self._memory.is_level:
                self._coverage.note_level(self.place)
            return False
        if self._has_time_for(left):
            return True
        self._coverage.note_growing(self.place, self._memory.growth, self.handed_on, self.length)
        return False

    def _is_whole(self, left: int | None) -> bool:
        """Whether the pass is not cut because the rest of it takes little time.

        Decided once per pass, and again when batches turn out to differ in size, by CPU time: what
        is rehearsed, and with it the need, should not depend on how busy the machine is. A pass of
        unknown length is handed on for as long.
        """
        progress, extent = self._coverage.progress, self._extent
        if progress.is_out_of_time:
            return False
        share = extent.varying_share if self._varies else extent.alike_share
        seconds = share * progress.budget_seconds
        if left is None:
            return self._pace.seconds < seconds
        if self._varies not in self._is_worth_its_time:
            pace = self._pace.mean if self._varies else self._pace.usual
            self._is_worth_its_time[self._varies] = pace * left < seconds
        return self._is_worth_its_time[self._varies]

    def _awaits_condition(self, left: int | None) -> bool:
        """Whether something is done only from a later step of this pass on, or only up to it.

        Decided once per pass, like the time that it takes.
        """
        if self._coverage.progress.is_out_of_time:
            return False
        if self._whole_until is None:
            self._whole_until = self.handed_on + self._batches_to_conditions(left)
        return self.handed_on < self._whole_until

    def _batches_to_conditions(self, left: int | None) -> int:
        """How many more batches it takes until conditions have changed and steps were made with
        what follows, as far as the budget allows."""
        progress, extent = self._coverage.progress, self._extent
        affordable = extent.conditions_share * progress.budget_seconds / max(self._pace.usual, 1e-9)
        batches = 0
        for ahead in self.place.conditions.ahead():
            if ahead.batches > affordable or (left is not None and ahead.batches > left):
                self.place.conditions.miss(ahead.condition)
            else:
                batches = ahead.batches + extent.first_steps * self._coverage.batches_per_step
        return batches

    def _has_time_for(self, batches: int | None) -> bool:
        """Whether the budget allows this many more batches, at the pace so far."""
        progress = self._coverage.progress
        if batches is None or progress.is_out_of_time:
            return not progress.is_out_of_time
        pace = (self._coverage.clock() - self._began) / max(self.handed_on, 1)
        return pace * batches < progress.budget_seconds - progress.seconds

    def _hand_on(self, batch: Any, index: int, shape: Shape) -> Any:
        if self.place.sizes.is_new(shape):
            self._coverage.progress.note_new((self.place.key, shape))
        self.place.sizes.note(shape)
        self._pace.note_batch()
        self.handed_on += 1
        self._coverage.note_handed_on(self)
        if self.length is not None and index >= self.length - 1:
            self.place.last_shape = shape
            self._coverage.is_at_last_batch = True
        else:
            self._coverage.is_at_last_batch = False
            self._note_full(shape)
        return batch

    def _note_full(self, shape: Shape) -> None:
        """Compare with other batches of this pass only: at one line, frameworks run several."""
        if self._full_shape is None:
            self._full_shape = shape
        elif shape != self._full_shape:
            self.place.varies = True
            self._varies = True

    def _end(self, is_complete: bool) -> None:
        if not self._has_ended:
            self._has_ended = True
            self._coverage.note_pass_end(self.place, self, is_complete)


class _Pace:
    """The CPU time of a batch: from the moment the script gets it until it asks for the next."""

    def __init__(self) -> None:
        self._began = 0.0
        self._latest = 0.0
        self._batches = 0
        self._slowest = 0.0
        """The slowest batch so far."""

    def note_batch(self) -> None:
        now = time.process_time()
        if self._batches == 0:
            # Not earlier: a fork made when the pass began has its own CPU clock.
            self._began = now
        else:
            self._slowest = max(self._slowest, now - self._latest)
        self._latest = now
        self._batches += 1

    @property
    def seconds(self) -> float:
        """Since the first batch."""
        return time.process_time() - self._began if self._batches else 0.0

    @property
    def mean(self) -> float:
        return self.seconds / max(self._batches, 1)

    @property
    def usual(self) -> float:
        """The mean without the slowest batch, which loads kernels and asks cuDNN for workspaces.

        No single batch can stand for it: frameworks draw the next one, or those of a step, ahead.
        """
        if self._batches < 2:
            return self.mean
        return (self.seconds - self._slowest) / (self._batches - 1)


class Place:
    """A line of the script at which passes over a loader begin."""

    def __init__(self, key: tuple[str, bool]) -> None:
        self.key = key
        self.varies = False
        """Whether batches within one pass differed in size, apart from the last one."""
        self.line, self.is_evaluation = key
        self.sizes = BatchSizes()
        self.last_shape: Shape | None = None
        self.longest = 0
        """Batches of the longest pass."""
        self.skipped = 0
        self.was_ended_early = False
        self.scan_seconds = 0.0
        self.is_uniform = False
        """Whether samples are stacked, which fails unless all have the same size."""
        self.not_looked_at = 0
        self.conditions = StepConditions()

    @property
    def is_shortened(self) -> bool:
        """Whether batches were left out of a pass."""
        return self.was_ended_early or self.skipped > 0 or self.not_looked_at > 0


class _CountedSampler:
    """Wraps the sampler of a pass and can skip batches."""

    def __init__(self, indices: Any, taken: int) -> None:
        self._indices = indices
        self.taken = taken

    @classmethod
    def put_into(cls, batches: Any, length: int | None) -> _CountedSampler | None:
        """Replace the sampler of a pass; None if its batches do not come from one."""
        indices = getattr(batches, "_sampler_iter", None)
        is_map = getattr(batches, "_dataset_kind", None) == 0
        if indices is None or length is None or not is_map:
            return None
        # The first batches have already been sent to workers.
        sampler = cls(indices, int(getattr(batches, "_send_idx", 0)))
        batches._sampler_iter = sampler
        return sampler

    def __iter__(self) -> _CountedSampler:
        return self

    def __next__(self) -> Any:
        indices = next(self._indices)
        self.taken += 1
        return indices

    def skip_to(self, position: int, is_late: Callable[[], bool]) -> int:
        """Skip all batches before this position, if it is not late before; returns how many."""
        skipped = 0
        while self.taken < position and (skipped % _BETWEEN_LOOKS != 0 or not is_late()):
            next(self)
            skipped += 1
        return skipped


def _is_uniform(torch: Any, loader: Any) -> bool:
    """Whether samples are stacked by PyTorch's default, which requires equal sizes."""
    data = torch.utils.data
    if loader.collate_fn is not data.default_collate:
        return False
    is_plain = type(loader.batch_sampler) is data.BatchSampler
    return is_plain and loader.batch_sampler.batch_size >= 2


def _is_in_for_loop(frame: FrameType) -> bool:
    """Whether a frame is at a `for`, which simply ends when the data does."""
    return dis.opname[frame.f_code.co_code[frame.f_lasti]] == "FOR_ITER"


def _length(loader: Any) -> int | None:
    try:
        return len(loader)
    except (TypeError, NotImplementedError, AttributeError):
        return None
