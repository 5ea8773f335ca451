"""How much of a training must be seen before it is enough. Independent of torch."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Extent:
    """How many batches, steps and passes a rehearsal runs."""

    first_steps: int
    """Optimizer steps at the beginning of each pass over training data."""
    first_evaluations: int
    """Batches at the beginning of each evaluation pass."""
    last_batches: int
    """Batches at the end of each pass; the very last may be smaller than the others."""
    whole_batches: int
    """A pass with at most this many batches is not cut: it would save little time, and the
    allocator's cache at its end would be that of a shorter pass."""
    varying_share: float
    """A pass whose batches differ in size is not cut if the rest of it takes at most this share of
    the budget: what the allocator has cached, and in which pieces, depends on all batches and
    their order."""
    alike_share: float
    """The same for a pass whose batches have one size. Repeated steps change little, but they may
    split more cached blocks, and an accumulation window may end elsewhere."""
    conditions_share: float
    """The same for the batches up to those with which a condition on counted steps changes
    (`step_conditions.py`)."""
    passes: int
    """Passes over the training data after which nothing new is expected."""
    quiet_steps: int
    """After those passes, this many steps without anything new are enough."""
    quiet_steps_without_passes: int
    """The same for a script that iterates no loader. It may do anything next, so it is watched for
    longer."""
    leisure_share: float
    """Until this share of the budget is spent, in CPU time, passes are not hurried even if nothing
    new comes, so that a short script is rehearsed to its end."""
    later_passes: int
    """Further passes that are started when nothing new comes any more: a later epoch may have
    larger images or train layers that were frozen."""
    later_share: float
    """Share of the budget, in CPU time, for still more of them, and for more steps of a script that
    iterates no loader: what comes after many short epochs (the next fold, a second model, the best
    checkpoint loaded again) may need most."""

    def without_later_passes(self) -> Extent:
        """This extent for a training whose later epochs are known to show nothing new."""
        return replace(self, leisure_share=0.0, later_passes=0, later_share=0.0)


THOROUGH = Extent(
    # The second step shows what the first one left; the third shows that nothing more is added.
    first_steps=3,
    first_evaluations=3,
    # The last but one, so that the change from a full to a smaller batch is seen.
    last_batches=2,
    whole_batches=16,
    varying_share=1 / 6,
    alike_share=1 / 60,
    conditions_share=1 / 3,
    # The first pass begins with an empty card; a third would find the same as the second.
    passes=2,
    quiet_steps=3,
    quiet_steps_without_passes=8,
    leisure_share=1 / 20,
    later_passes=10,
    later_share=1 / 12,
)

BRIEF = Extent(
    # As many as it takes to tell how long a step takes (`crates/cuda/src/work/recorder.rs`).
    first_steps=3,
    first_evaluations=2,
    last_batches=1,
    whole_batches=4,
    varying_share=0.0,
    alike_share=0.0,
    conditions_share=0.0,
    passes=1,
    quiet_steps=1,
    quiet_steps_without_passes=2,
    leisure_share=0.0,
    later_passes=0,
    later_share=0.0,
)
"""For a training whose brief rehearsal is known to give the same figures as a thorough one."""
