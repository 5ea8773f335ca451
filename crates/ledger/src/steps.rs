//! Where the optimizer steps of a recording are, and the peak of each.

use ghostgpu_recording::{CardMemory, Stage};

use crate::moment::Moment;

/// One optimizer step with everything since the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepSummary {
    /// Counted from 0.
    pub step: u32,
    /// Where the step's first phase begins.
    pub from: Moment,
    /// Where its last phase ends.
    pub to: Moment,
    /// Where the optimizer's own step ends; `None` if it did not complete.
    pub optimizer_done: Option<Moment>,
    /// The most that was allocated in it, including what was live at its beginning.
    pub peak_allocated_bytes: u64,
    pub peak_reserved_bytes: u64,
    /// Allocated bytes at `optimizer_done`, or at `to` without it.
    pub allocated_after_bytes: u64,
}

/// The phases as intervals of moments; the state at `from` is the one before the phase.
pub(crate) fn intervals(card: &CardMemory) -> impl Iterator<Item = Interval> + '_ {
    let end = card.events.len();
    card.phases.iter().enumerate().map(move |(at, phase)| {
        let next = card.phases.get(at + 1);
        let from = (phase.first_event as usize).min(end);
        let to = next.map_or(end, |next| (next.first_event as usize).min(end));
        Interval {
            stage: phase.stage,
            step: phase.step,
            from: Moment(from),
            to: Moment(to.max(from)),
        }
    })
}

/// A phase with both of its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) stage: Stage,
    pub(crate) step: u32,
    pub(crate) from: Moment,
    pub(crate) to: Moment,
}

/// The steps of a card in order, without their peaks. A step number that occurs again after another one is a new step.
///
/// An optimizer that allocates nothing (plain SGD) leaves no phase. Its step ends where the next one begins, and the
/// number of `complete` steps shows whether the last one completed.
pub(crate) fn steps_of(card: &CardMemory, complete: u32) -> Vec<StepSummary> {
    let mut steps: Vec<StepSummary> = Vec::new();
    for interval in intervals(card) {
        let is_new = steps.last().is_none_or(|last| last.step != interval.step);
        if is_new {
            steps.push(StepSummary {
                step: interval.step,
                from: interval.from,
                to: interval.to,
                optimizer_done: None,
                peak_allocated_bytes: 0,
                peak_reserved_bytes: 0,
                allocated_after_bytes: 0,
            });
        }
        if let Some(step) = steps.last_mut() {
            step.to = interval.to;
            if interval.stage == Stage::OptimizerStep {
                step.optimizer_done = Some(interval.to);
            }
        }
    }
    let last = steps.len().saturating_sub(1);
    for (at, step) in steps.iter_mut().enumerate() {
        if step.optimizer_done.is_none() && (at < last || step.step < complete) {
            step.optimizer_done = Some(step.to);
        }
    }
    steps
}
