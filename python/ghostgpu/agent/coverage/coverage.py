"""Watches a training, shortens its passes, and decides when enough of it has been seen."""

from __future__ import annotations

import os
import time
from types import FrameType, ModuleType
from typing import Any, Callable

from ...tricks.evaluating import Evaluating
from ...tricks.hooks import Hooks
from ..guard import quietly
from ..peaks import PeakTracker
from ..report import RECORD, CoverageReport, Covered, NotReached
from ..session import CoverageRequest
from ..stacks import current_frames, is_backward, is_user_code, users_line
from ..stages import follows_gradients
from . import frameworks
from .batch_shapes import elements, in_words
from .evaluation_ahead import EvaluationLine, main_file, reachable_evaluations, users_sources
from .extent import BRIEF, THOROUGH, Extent
from .no_gradients import NoGradients
from .passes import (
    ALIKE_BATCHES,
    ALIKE_SHARE,
    FEWEST_WITHOUT_STEP,
    MOST_WITHOUT_STEP,
    SCAN_SHARE,
    Place,
    ShortenedPass,
)
from .progress import Progress
from .undisturbed_clock import UndisturbedClock


def _extent(request: CoverageRequest) -> Extent:
    extent = BRIEF if request.is_brief else THOROUGH
    return extent.without_later_passes() if request.skips_later_passes else extent


class Coverage:
    """The coverage of this process."""

    def __init__(self, torch: Any, request: CoverageRequest, peaks: PeakTracker) -> None:
        self.torch = torch
        self.shortens = request.shortens_passes
        self.in_lockstep: Callable[[], bool] = lambda: False
        """Whether there are other ranks, which must take the same batches as this one."""
        self._peaks = peaks
        self.clock = UndisturbedClock()
        self.progress = Progress(
            request.budget_seconds, self.clock, time.process_time, _extent(request)
        )
        self.is_at_last_batch = False
        """Whether the latest batch that the script got is the last of its pass."""
        self._places: dict[tuple[str, bool], Place] = {}
        self._hooks = Hooks(torch)
        self._is_evaluating = Evaluating(torch, self._hooks)
        self._evaluated_at: str | None = None
        self._saved_at: str | None = None
        self._entered: set[tuple[str, int]] = set()
        """Files and lines at which evaluations began after the first step."""
        self._entered_before: set[tuple[str, int]] = set()
        """The same before the first step."""
        self._script = main_file()
        self._ahead: list[EvaluationLine] | None = None
        self._growing: dict[tuple[str, bool], NotReached] = {}
        self._endless: dict[tuple[str, bool], NotReached] = {}
        self._steps_at_first_end: int | None = None
        self._allocated_before = 0
        self._left_out_steps: int | None = 0
        """Steps left out of shortened passes; None once a pass of unknown length was shortened."""
        self._latest_pass: ShortenedPass | None = None
        """The pass that the latest batch came from, unless it has ended."""
        self._most_batches_per_step = 0
        self._is_off = False

    def install(self) -> None:
        """Hook into loaders, and into switching models to evaluation mode."""
        self._hooks.around_batches.append(self._shorten)
        self._hooks.before_mode.append(quietly(self._note_mode))
        self._hooks.after_optimizer.append(quietly(self._note_optimizer))
        self._hooks.install()
        NoGradients(self.torch, self._note_no_gradients).install()

    def after_import(self, module: ModuleType) -> None:
        """Adapt a framework that has just been imported."""
        frameworks.after_import(self, module)

    def note_saved(self) -> None:
        """The script writes a checkpoint."""
        if self._saved_at is None and self.progress.steps > 0:
            self._saved_at = users_line()
            self.progress.note_new("a checkpoint")

    def forget_parent(self) -> None:
        """Called in a forked child, which shortens nothing: the parent trains."""
        self.shortens = False

    def go_on_in_copy(self) -> None:
        """Called in a fork that continues from a size point: it has the whole budget."""
        self.progress.restart_clock()

    def begin_in_copy(self, request: CoverageRequest | None) -> None:
        """Called in a copy of the script that continues as another rehearsal."""
        if request is None:
            self.switch_off()
            return
        self.shortens = request.shortens_passes
        self.progress.restart(request.budget_seconds, _extent(request))

    def switch_off(self) -> None:
        """Leave passes as they are: this process runs a fixed number of steps."""
        self.shortens = False
        self._is_off = True

    def moment(self, frames: list[FrameType]) -> str | None:
        """Which part of a training a stack belongs to; None in ordinary first steps."""
        if self.progress.steps == 0:
            return None
        # Gradients are disabled in a backward pass too.
        is_training = any(is_backward(frame) for frame in frames)
        if not is_training and (
            not follows_gradients(frames, self.torch) or self._is_in_evaluation_mode(frames)
        ):
            return "evaluation"
        latest = self._latest_pass
        if latest is None:
            return None
        if self.is_at_last_batch:
            return "last-batch"
        return None if self._steps_at_first_end is None else "next-epoch"

    def _is_in_evaluation_mode(self, frames: list[FrameType]) -> bool:
        # The outermost module decides: inner layers may be frozen while the model trains.
        callers = (frame.f_locals.get("self") for frame in frames)
        modules = (each for each in callers if isinstance(each, self.torch.nn.Module))
        model = next(modules, None)
        return model is not None and not model.training

    # --- steps

    def is_enough(self) -> bool:
        """Called after each optimizer step: whether the script can be ended."""
        peaks = tuple(
            figure
            for device in self._peaks.fold()
            for figure in (device.peak_allocated_bytes, device.peak_reserved_bytes)
        )
        allocated = self._allocated_bytes()
        self.progress.note_step(RECORD.report.steps, peaks, allocated - self._allocated_before)
        self._allocated_before = allocated
        self._note_step()
        return self.progress.is_enough(self._is_evaluation_ahead)

    def _allocated_bytes(self) -> int:
        """Everything that was ever allocated on the current card."""
        cuda = self.torch.cuda
        if not cuda.is_initialized():
            return 0
        statistics = self.torch._C._cuda_memoryStats(cuda.current_device())
        return int(statistics["allocated_bytes"]["all"]["allocated"])

    def _note_step(self) -> None:
        latest = self._latest_pass
        if latest is None:
            return
        # A pass is training if an optimizer step follows, whatever it looked like.
        latest.place.is_evaluation = False
        self.progress.has_training_loader |= not latest.is_endless
        per_step = -(-latest.handed_on // max(latest.steps, 1))
        self._most_batches_per_step = max(self._most_batches_per_step, per_step)

    def _is_evaluation_ahead(self) -> bool:
        return bool(self._unreached())

    def _unreached(self) -> list[EvaluationLine]:
        return [line for line in self._evaluations() if not self._was_entered(line)]

    def _evaluations(self) -> list[EvaluationLine]:
        """The evaluations that the script can reach."""
        if self._ahead is None:
            self._ahead = reachable_evaluations(users_sources(self._script), self._script)
        return self._ahead

    def _was_entered(self, line: EvaluationLine) -> bool:
        entered = self._entered if line.is_repeated else self._entered | self._entered_before
        return any((line.file, at) in entered for at in range(line.first, line.last + 1))

    def _note_optimizer(self, optimizer: Any) -> None:
        self.progress.note_optimizer()

    def _note_mode(self, module: Any, mode: bool) -> None:
        if mode:
            return
        for frame in current_frames():
            if is_user_code(frame.f_code.co_filename):
                file = os.path.abspath(frame.f_code.co_filename)
                self._entered_now.add((file, frame.f_lineno or 0))
        if self.progress.steps > 0:
            self._note_evaluation()

    def _note_no_gradients(self, file: str, line: int) -> None:
        if (file, line) in self._entered_now:
            return
        self._entered_now.add((file, line))
        # Not every function without gradients evaluates.
        if self.progress.steps > 0 and self._evaluated_at is None:
            lines = (each for each in self._evaluations() if each.file == file)
            if any(each.first <= line <= each.last for each in lines):
                self._note_evaluation()

    @property
    def _entered_now(self) -> set[tuple[str, int]]:
        return self._entered if self.progress.steps > 0 else self._entered_before

    def _note_evaluation(self) -> None:
        if self._evaluated_at is None:
            self._evaluated_at = users_line()
            self.progress.note_new("evaluation")

    # --- passes

    def _shorten(self, loader: Any, batches: Any) -> Any:
        wrapped = quietly(self._pass)(loader, batches)
        return batches if wrapped is None else wrapped

    def _pass(self, loader: Any, batches: Any) -> ShortenedPass:
        is_evaluation = bool(self._is_evaluating())
        key = (users_line(), is_evaluation)
        place = self._places.setdefault(key, Place(key))
        if is_evaluation and self.progress.steps > 0:
            self._note_evaluation()
        begun = ShortenedPass(self, loader, batches, place)
        # One function often evaluates several sets, and what it keeps grows with them.
        if begun.length is not None and begun.length > place.longest:
            place.longest = begun.length
            self.progress.note_new((key, begun.length))
        return begun

    def note_handed_on(self, under_way: ShortenedPass) -> None:
        """The script got a batch of this pass."""
        self._latest_pass = under_way

    def may_scan(self, place: Place, can_jump: bool) -> bool:
        """Whether batches may be loaded just to see their sizes, or to get to the last ones."""
        if self.progress.is_out_of_time or self.progress.is_in_a_hurry:
            return False
        if place.is_uniform and not place.varies and can_jump:
            return False
        is_short = place.varies or place.skipped < ALIKE_BATCHES or not can_jump
        share = SCAN_SHARE if is_short else ALIKE_SHARE
        return place.scan_seconds < share * self.progress.budget_seconds

    @property
    def most_without_step(self) -> int:
        """How many batches of a pass are handed on while waiting for its first optimizer step."""
        if self._most_batches_per_step == 0:
            return MOST_WITHOUT_STEP
        return max(FEWEST_WITHOUT_STEP, 2 * self._most_batches_per_step)

    @property
    def batches_per_step(self) -> int:
        """How many batches make an optimizer step: more than one if gradients are accumulated."""
        return max(self._most_batches_per_step, 1)

    def note_pass_end(self, place: Place, ended: ShortenedPass, is_complete: bool) -> None:
        """A pass has reached its end, or was cut off."""
        place.was_ended_early |= not is_complete
        if self._latest_pass is ended:
            self._latest_pass = None
        if not place.is_evaluation and ended.steps > 0:
            self._note_left_out_steps(ended)
            if self._steps_at_first_end is None:
                self._steps_at_first_end = self.progress.steps
            self.progress.note_pass_end()

    def _note_left_out_steps(self, ended: ShortenedPass) -> None:
        if ended.length is None:
            self._left_out_steps = None
        elif self._left_out_steps is not None:
            left_out = max(0, ended.length - ended.handed_on)
            # Assumes as many steps per batch as in the rehearsed part, rounded up.
            self._left_out_steps += -(-left_out * ended.steps // max(1, ended.handed_on))

    def note_endless(self, place: Place, drawn: int) -> None:
        """The last batches of a pass cannot be reached directly, so it was cut off."""
        self._endless[place.key] = NotReached(
            "evaluation" if place.is_evaluation else "last-batch",
            f"the data at {place.line} have no known end; {drawn} batches were looked at",
        )

    def note_growing(self, place: Place, growth: int, handed_on: int, length: int | None) -> None:
        """Memory grows with each batch of a pass that is too long to be rehearsed completely."""
        of_all = "" if length is None else f" of {length:,}"
        self._growing[place.key] = NotReached(
            "evaluation" if place.is_evaluation else "last-batch",
            f"memory grows by {growth:,} bytes with each batch at {place.line}, and the time "
            f"budget allowed for {handed_on:,}{of_all}",
        )

    def note_level(self, place: Place) -> None:
        """Memory no longer grows from batch to batch."""
        self._growing.pop(place.key, None)

    # --- the report

    def tell(self) -> None:
        """Report what was seen; called once, at the end of the process."""
        if self._is_off:
            return
        for place in self._places.values():
            if place.not_looked_at and (not place.is_uniform or place.varies):
                RECORD.assume(
                    f"{place.line}: batches that were not loaded ({place.not_looked_at:,} of a "
                    "pass) are no larger than those that were"
                )
            if place.varies and place.skipped + place.not_looked_at > 0:
                RECORD.assume(
                    f"{place.line}: batches differ in size, and a part of them was rehearsed; with "
                    "all of them, in their own order, the job may need more"
                )
        if self._was_stopped and self.progress.later_trainings > 0:
            RECORD.assume(
                "Trainings that the script begins later, each with an optimizer of its own, need "
                f"no more than the first {self.progress.later_trainings + 1:,}"
            )
        training = [place for place in self._places.values() if not place.is_evaluation]
        missed = [name for place in training for name in place.conditions.missed()]
        if missed:
            RECORD.assume(
                f"What depends on {_listed(missed)} needs no more: the rehearsed steps did not get "
                "there (--full, or a longer --budget)"
            )
        if any(place.is_shortened for place in training):
            RECORD.assume(
                "Steps that were left out of shortened epochs do what the others do (--full leaves "
                "none out)"
            )
        RECORD.report.coverage = CoverageReport(
            covered=self._covered(),
            not_reached=self._not_reached(),
            is_shortened=self._is_shortened,
            is_training_shortened=any(place.is_shortened for place in training),
            left_out_steps=None if self._was_stopped else self._left_out_steps,
            later_passes_are_alike=self.progress.later_passes_are_alike,
            do_batches_vary=any(place.varies for place in training),
            growth_cut_short=self._growth_cut_short(training),
        )

    def _growth_cut_short(self, training: list[Place]) -> str | None:
        # Where batches differ in size, three that each leave more behind do not mean growth.
        found = (self._growing.get(place.key) for place in training if not place.varies)
        return next((missed.because for missed in found if missed is not None), None)

    @property
    def _is_shortened(self) -> bool:
        return any(place.is_shortened for place in self._places.values())

    @property
    def _was_stopped(self) -> bool:
        return RECORD.report.stopped_by_step_limit

    def _covered(self) -> list[Covered]:
        steps = self.progress.steps
        covered = [Covered("steps", f"{steps:,}")] if steps else []
        training = [place for place in self._places.values() if not place.is_evaluation]
        covered += _sizes(training)
        if self._steps_at_first_end is not None:
            last = next((place.last_shape for place in training if place.last_shape), None)
            covered.append(Covered("last-batch", in_words(last) if last else ""))
        if self._evaluated_at is not None:
            covered.append(Covered("evaluation", f"at {self._evaluated_at}"))
        if self._saved_at is not None:
            covered.append(Covered("checkpoint", f"at {self._saved_at}"))
        if self._steps_at_first_end is not None and steps > self._steps_at_first_end:
            covered.append(Covered("next-epoch", f"{steps - self._steps_at_first_end:,} steps"))
        ended_by_itself = not self._was_stopped and RECORD.report.waits_at is None
        if ended_by_itself and RECORD.report.exception is None:
            covered.append(Covered("end-of-script", ""))
        return covered

    def _not_reached(self) -> list[NotReached]:
        found = [*self._growing.values(), *self._endless.values()]
        # A script that ended by itself, with whole passes, cannot have missed anything.
        unreached = self._unreached() if self._was_stopped or self._is_shortened else []
        if unreached:
            names = ", ".join(str(line) for line in unreached[:3])
            within = "in time" if self._was_stopped else "in shortened passes"
            found.append(NotReached("evaluation", f"{names} was not reached {within}"))
        if not self._was_stopped:
            return found
        time_spent = f"the time budget of {self.progress.budget_seconds:g} s was spent"
        if self.progress.has_training_loader and self._steps_at_first_end is None:
            found.append(NotReached("last-batch", time_spent))
        return found


def _listed(names: list[str]) -> str:
    """The first of them; the rest as a number."""
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"


def _sizes(places: list[Place]) -> list[Covered]:
    """The largest and the smallest batch, where there is more than one size."""
    if not any(len(place.sizes.shapes) > 1 for place in places):
        return []
    largest = [place.sizes.largest for place in places if place.sizes.largest]
    smallest = [place.sizes.smallest for place in places if place.sizes.smallest]
    return [
        Covered("largest-batch", in_words(max(largest, key=elements))),
        Covered("smallest-batch", in_words(min(smallest, key=elements))),
    ]
