"""Decides when enough of a training has been seen. Independent of torch.

It is told of everything new as it happens: a higher peak, a new batch size, the end of a pass,
evaluation, a checkpoint. After each optimizer step it is asked whether the script can end.
"""

from __future__ import annotations

from collections import deque
from typing import Callable

from .extent import THOROUGH, Extent

QUIET_VARYING_STEPS = 40
"""The quiet steps required where steps differ: with random lengths, the longest may come late."""

VARYING_SHARE = 1 / 4
"""Share of the budget during which that many are required."""

STEPS_COMPARED = 8
"""How many of the latest steps are compared. Steps vary if these allocated more than half as many
different amounts of memory."""

HURRY_SHARE = 1 / 3
"""Share of the budget, in CPU time, for later epochs and for an evaluation that lies ahead."""


class Progress:
    """What has been seen, and whether that is enough."""

    def __init__(
        self,
        budget_seconds: float,
        clock: Callable[[], float],
        processor_clock: Callable[[], float],
        extent: Extent = THOROUGH,
    ) -> None:
        self.budget_seconds = budget_seconds
        self.extent = extent
        self._has_begun_to_hurry = False
        self._was_surprised = False
        """Whether something new came after it had seemed settled."""
        self._clock = clock
        """Tells how much of the budget is spent."""
        self._processor_clock = processor_clock
        self._processor_began_at = 0.0
        self._began_at: float | None = None
        self._hurries_since: float | None = None
        self._passes_when_settled = 0
        self._processor_when_settled = 0.0
        self.steps = 0
        self._quiet_since_step = 0
        self._peaks: tuple[int, ...] = ()
        self._allocated: deque[int] = deque(maxlen=STEPS_COMPARED)
        """Bytes allocated in each of the latest steps."""
        self._seen: set[object] = set()
        self.training_passes = 0
        """Passes over training data that have ended."""
        self.has_training_loader = False
        self._passes_at_optimizer = 0
        self.later_trainings = 0
        """Optimizers made after a pass over training data that an earlier one had: the next fold,
        the next point of a grid, layers that are trained from now on."""

    def begin(self) -> None:
        """Start the budget's clock, with the first batch or the first step."""
        if self._began_at is None:
            self._began_at = self._clock()
            self._processor_began_at = self._processor_clock()

    def restart(self, budget_seconds: float, extent: Extent) -> None:
        """Start with other limits, in a copy of a script that has not trained yet."""
        self.budget_seconds = budget_seconds
        self.extent = extent
        self.restart_clock()

    def restart_clock(self) -> None:
        """Forget the time spent so far, but not what was seen."""
        self._began_at = None
        self._hurries_since = None

    @property
    def seconds(self) -> float:
        """Seconds since the first batch or step."""
        return 0.0 if self._began_at is None else self._clock() - self._began_at

    @property
    def is_out_of_time(self) -> bool:
        """Whether the budget is spent."""
        return self.seconds >= self.budget_seconds

    def note_new(self, what: object) -> None:
        """Something happened; if it is new, the count of quiet steps starts again."""
        if what not in self._seen:
            self._seen.add(what)
            self._quiet_since_step = self.steps

    def note_pass_end(self) -> None:
        """A pass over training data has ended."""
        self.training_passes += 1
        if self.training_passes <= self.extent.passes:
            self.note_new(f"the end of pass {self.training_passes}")

    def note_optimizer(self) -> None:
        """The script has made an optimizer."""
        if self.training_passes > self._passes_at_optimizer:
            self._passes_at_optimizer = self.training_passes
            self.later_trainings += 1

    def note_step(self, step: int, peaks: tuple[int, ...], allocated_bytes: int = 0) -> None:
        """An optimizer step has ended, with these peaks since the start.

        `allocated_bytes` is everything that was allocated during the step, freed or not.
        """
        self.begin()
        self._allocated.append(allocated_bytes)
        self.steps = step
        if any(new > old for new, old in zip(peaks, self._peaks)) or len(peaks) > len(self._peaks):
            self._quiet_since_step = step
        self._peaks = peaks

    @property
    def is_settled(self) -> bool:
        """Whether nothing new has been seen for long enough."""
        quiet = self.steps - self._quiet_since_step
        if self.has_training_loader:
            has_passes = self.training_passes >= self.extent.passes
            return has_passes and quiet >= self.extent.quiet_steps
        if self._do_steps_vary and self.seconds < VARYING_SHARE * self.budget_seconds:
            return quiet >= QUIET_VARYING_STEPS
        return quiet >= self.extent.quiet_steps_without_passes

    @property
    def _has_leisure(self) -> bool:
        """Whether so little CPU time was spent that passes need not be hurried."""
        spent = self._processor_clock() - self._processor_began_at
        return spent < self.extent.leisure_share * self.budget_seconds

    @property
    def _do_steps_vary(self) -> bool:
        return len(set(self._allocated)) > STEPS_COMPARED // 2

    def is_enough(self, is_evaluation_ahead: Callable[[], bool]) -> bool:
        """Whether the script can be ended now.

        When nothing new comes any more, the script continues in a hurry, through a few later epochs
        and up to an evaluation that lies ahead.
        """
        if self.steps < self.extent.first_steps:
            return False
        if self.is_out_of_time:
            return True
        if not self.is_settled:
            self._was_surprised |= self._has_begun_to_hurry
            self._hurries_since = None
            return False
        if self.has_training_loader and self._has_leisure:
            return False
        self._has_begun_to_hurry = True
        if self._hurries_since is None:
            self._hurries_since = self._clock()
            self._passes_when_settled = self.training_passes
            self._processor_when_settled = self._processor_clock()
        if self._hurried_seconds >= HURRY_SHARE * self.budget_seconds:
            return True
        if self._has_time_for_later_passes:
            return False
        return not is_evaluation_ahead()

    @property
    def _has_time_for_later_passes(self) -> bool:
        # Where one training follows another, only going on shows how large the next one is.
        if self.later_trainings > 0 and self.extent.later_passes > 0:
            return True
        later = self.training_passes - self._passes_when_settled
        if self.has_training_loader and later < self.extent.later_passes:
            return True
        return self._hurried_seconds < self.extent.later_share * self.budget_seconds

    @property
    def _hurried_seconds(self) -> float:
        """CPU seconds in a hurry: how far it leads should not depend on how busy the machine is."""
        return self._processor_clock() - self._processor_when_settled

    @property
    def later_passes_are_alike(self) -> bool:
        """Whether the later passes, which were only begun to look for it, showed nothing new."""
        return self._has_begun_to_hurry and self.is_settled and not self._was_surprised

    @property
    def is_in_a_hurry(self) -> bool:
        """Whether passes are only run to reach what comes after them."""
        return self._hurries_since is not None and self.is_settled
