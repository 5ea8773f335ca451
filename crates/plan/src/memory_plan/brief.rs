//! Whether a short rehearsal of a job tells what a thorough one does.
//!
//! A thorough rehearsal goes through two epochs and looks into later ones. For most jobs all of that leads to the figures
//! of the first steps, one evaluation and the step after it, and then combinations need no more than that. What
//! is recommended in the end is rehearsed thoroughly in any case.

use std::collections::BTreeSet;

use ghostgpu_rehearse::{Change, Completion, Purpose, Rehearsal, Rehearse, Run, Stop};
use ghostgpu_session::TrainingPart;

use crate::StepGrowth;

/// Whether the job, which was rehearsed thoroughly with unlimited memory, comes to the same figures briefly.
pub fn tells_the_same(runner: &mut dyn Rehearse, thorough: &Run) -> Result<bool, Stop> {
    // Growth shows only in many steps, and without coverage there is nothing to shorten.
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

/// The parts of the training that a run came to; none where nobody looked.
fn covered(run: &Run) -> Option<BTreeSet<TrainingPart>> {
    let coverage = run.findings.main_process()?.coverage.as_ref()?;
    let parts = coverage.covered.iter().map(|covered| covered.part);
    // A brief rehearsal is ended earlier, and what it leaves out behind the training is written by the host.
    let is_at_end =
        |part: &TrainingPart| matches!(part, TrainingPart::Checkpoint | TrainingPart::EndOfScript);
    Some(parts.filter(|part| !is_at_end(part)).collect())
}
