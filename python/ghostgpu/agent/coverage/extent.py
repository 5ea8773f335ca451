"""How much of a training is seen before it is enough. Knows nothing of torch."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Extent:
    """So much of passes, of steps and of epochs."""

    first_steps: int
    """At the beginning of each pass over training data."""
    first_evaluations: int
    """Batches at the beginning of each pass that evaluates."""
    last_batches: int
    """At the end of each pass; the last one may be smaller."""
    whole_batches: int
    """A pass of no more batches is not cut: little time would be saved, and what the allocator has
    cached at its end would be what another, shorter pass leaves."""
    varying_share: float
    """Of the budget: a pass whose batches differ in size is not cut if the rest of it takes no
    longer. What the allocator has cached, and in which pieces, depends on all of them and on their
    order."""
    alike_share: float
    """The same for a pass whose batches are of one size. Repeated steps change little, but not
    nothing: which cached blocks are split, and where an accumulation window ends."""
    passes: int
    """Over the training data, before nothing new is expected."""
    quiet_steps: int
    """So many steps without anything new, after the end of those passes, are enough."""
    quiet_steps_without_passes: int
    """A script that does not iterate a loader may do anything next: it is watched longer."""
    leisure_share: float
    """Of the budget, in time of the processor: before that, passes are not hurried through although
    nothing new is seen, so that a short script is rehearsed to its end."""
    later_passes: int
    """Passes that are begun when nothing new is seen any more: in a later epoch images may be
    larger, or frozen layers be trained."""

    def without_later_passes(self) -> Extent:
        """The same for a training whose later epochs are known to show nothing new."""
        return replace(self, leisure_share=0.0, later_passes=0)


THOROUGH = Extent(
    # The second step shows what stays from the first; the third, that nothing else does.
    first_steps=3,
    first_evaluations=3,
    # The one before the last shows the way from full to small.
    last_batches=2,
    whole_batches=12,
    varying_share=1 / 6,
    alike_share=1 / 30,
    # The first pass begins with an empty card; what the second one leaves, the third finds.
    passes=2,
    quiet_steps=3,
    quiet_steps_without_passes=8,
    leisure_share=1 / 20,
    later_passes=10,
)

BRIEF = Extent(
    # As many as tell how long a step takes (`crates/cuda/src/work/recorder.rs`).
    first_steps=3,
    first_evaluations=2,
    last_batches=1,
    whole_batches=4,
    varying_share=0.0,
    alike_share=0.0,
    passes=1,
    quiet_steps=1,
    quiet_steps_without_passes=2,
    leisure_share=0.0,
    later_passes=0,
)
"""For a training of which a thorough rehearsal is known, and that it leads to the same figures."""
