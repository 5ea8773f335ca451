//! Whether a brief rehearsal of a job gives the same figures as a thorough one.
//!
//! A thorough rehearsal runs two epochs and samples later ones. For most jobs, the first steps, one evaluation and the
//! step after it already give the same figures, and then combinations are rehearsed no longer than that. The
//! combination that is recommended in the end is always rehearsed thoroughly.

use std::collections::BTreeSet;

use ghostgpu_rehearse::{Change, Completion, Purpose, Rehearsal, Rehearse, Run, Stop};
use ghostgpu_session::TrainingPart;

use crate::StepGrowth;

/// Whether a brief rehearsal with unlimited memory gives the same figures as `thorough`.
pub fn tells_the_same(runner: &mut dyn Rehearse, thorough: &Run) -> Result<bool, Stop> {
    // Growth shows only over many steps, and without coverage there is nothing to shorten.
    let Some(wanted) = covered(thorough).filter(|_| StepGrowth::of(thorough).is_none()) else {
        return Ok(false);
    };
    let changes = vec![Change::UnlimitedMemory, Change::Briefly];
    let rehearsal = Rehearsal::figures(Purpose::Need, changes);
    let brief = Run::even_if_timed_out(runner.rehearse(&rehearsal))?;
    Ok(brief.completion() == Completion::Completed
        && brief.peaks() == thorough.peaks()
        && covered(&brief).is_some_and(|seen| wanted.is_subset(&seen)))
}

/// The parts of the training that a run reached; `None` if it has no coverage.
fn covered(run: &Run) -> Option<BTreeSet<TrainingPart>> {
    let coverage = run.findings.main_process()?.coverage.as_ref()?;
    let parts = coverage.covered.iter().map(|covered| covered.part);
    // A brief rehearsal ends before these parts. They happen on the host, so they need no memory on the card.
    let is_at_end =
        |part: &TrainingPart| matches!(part, TrainingPart::Checkpoint | TrainingPart::EndOfScript);
    Some(parts.filter(|part| !is_at_end(part)).collect())
}
