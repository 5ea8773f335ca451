//! Confirms the batch that was found: with a whole run, and wherever the driver may place segments.

use ghostgpu_rehearse::{Completion, Outcome, Purpose, Records, Rehearsal, Rehearse, Run, Stop};

use super::result::{Confirmation, Found};
use super::{Goal, with_batch};
use crate::need::flushes;
use crate::placement::TightRun;

/// Confirms the batch that was found with a whole run. A batch that was found by whole runs counts as confirmed if
/// PyTorch never flushed its cache.
///
/// Whether a batch barely fits may depend on where the driver places segments, which differs between machines. If so,
/// `found` is lowered to a slightly smaller batch.
pub fn confirm(
    runner: &mut dyn Rehearse,
    goal: &Goal,
    found: &mut Found,
) -> Result<(Confirmation, Run), Stop> {
    if let Some(run) = found.run.take_if(|run| flushes(run) == Some(0)) {
        return Ok((Confirmation::FoundByRuns, run));
    }
    let was_found_by_runs = found.run.take().is_some();
    for _ in 0..LOWERINGS {
        let run = whole_run(runner, goal, found)?;
        let outcome = Outcome::of(&run);
        let is_certain = run.completion() != Completion::Completed
            || ends_elsewhere(&run, goal, found.batch) != Some(false);
        let below = found.batch - (found.batch / LOWERING_PARTS).max(1).min(found.batch);
        if !is_certain && below > 0 {
            found.lowered_from.get_or_insert(found.batch);
            found.outcomes.insert(found.batch, outcome);
            found.batch = below;
            continue;
        }
        let confirmation = match (outcome, found.outcomes.get(&found.batch)) {
            (Outcome::Fits(_), _) if was_found_by_runs => Confirmation::FoundByRuns,
            (Outcome::Fits(whole), Some(Outcome::Fits(fork))) if whole == *fork => {
                Confirmation::Equal
            }
            (Outcome::Fits(_), Some(Outcome::Fits(_))) => Confirmation::FitsDifferently,
            (Outcome::Fits(_), _) => Confirmation::NotCompared,
            _ => Confirmation::Contradicts,
        };
        return Ok((confirmation, run));
    }
    let run = whole_run(runner, goal, found)?;
    let confirmation = match Outcome::of(&run) {
        Outcome::Fits(_) => Confirmation::NotCompared,
        _ => Confirmation::Contradicts,
    };
    Ok((confirmation, run))
}

/// How often a batch that depends on the layout is lowered, each time by one part in `LOWERING_PARTS` of it.
const LOWERINGS: u32 = 4;
const LOWERING_PARTS: u64 = 400;

/// Below this batch, pages of kernel code are not considered: one sample less would be too large a loss.
const FEW_SAMPLES: u64 = 50;

/// A whole run with the batch that was found. A timeout is no stop here: the batch is reported all the same.
fn whole_run(runner: &mut dyn Rehearse, goal: &Goal, found: &Found) -> Result<Run, Stop> {
    let mut changes = vec![with_batch(&found.point, found.batch)];
    changes.extend(goal.card());
    let rehearsal = Rehearsal {
        purpose: Purpose::Confirmation { batch: found.batch },
        changes,
        records: Records::History,
    };
    Run::even_if_timed_out(runner.rehearse(&rehearsal))
}

/// Whether a job that completed on this card would also complete with its segments placed elsewhere; `None` if the
/// placement does not matter, or if that cannot be determined.
fn ends_elsewhere(run: &Run, goal: &Goal, batch: u64) -> Option<bool> {
    let tight = TightRun::of(run, goal.memory_bytes())?;
    let ends_beside_code = || batch < FEW_SAMPLES || tight.ends_beside_code();
    Some(tight.ends_in_other_layouts() && ends_beside_code())
}
