//! What helps against an out-of-memory error: each piece of advice is rehearsed.
//!
//! Every piece of advice becomes a [`RehearsedCandidate`], which works, fails or was not rehearsed, with the reason.
//! [`Made`] is what was changed, as data.

mod bench;
mod fixed_lines;
mod result;
mod script_options;
mod sizes;

use std::ffi::OsString;

use ghostgpu_explain::Advice;
use ghostgpu_rehearse::{Outcome, Peaks, Rehearsal, Run, Runner, SizePoint, Stop};
use ghostgpu_session::ChangeReport;

use crate::need::{Need, need};
use crate::step_growth::growth_per_step;
use bench::Bench;
pub use fixed_lines::{FixedLine, NoFix};
pub use result::{
    AsItIs, CandidateOutcome, Candidates, Failed, Made, NotRehearsed, RehearsedCandidate,
};

/// The advice to rehearse, for which script and card.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    pub advice: &'a [Advice],
    pub script: &'a Script,
    /// The script's own arguments.
    pub words: &'a [OsString],
    /// Where the batch is set.
    pub batch: SizePoint,
    /// The card's memory.
    pub capacity_bytes: u64,
    /// The number of steps of the first stage of a batch search (see `largest_batch::Goal`).
    pub first_steps: Option<u64>,
    /// Tricks that are known to be enough; they are not rehearsed again.
    pub known: &'a [KnownTrick],
}

/// A trick that a plan rehearsed alone on the same card, and with which the whole training fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownTrick {
    pub peaks: Peaks,
    /// What it did.
    pub report: ChangeReport,
}

/// The text of a script.
#[derive(Clone, Debug)]
pub struct Script {
    /// The name of its file, without folders.
    pub name: String,
    /// Its bytes, or why they cannot be read.
    pub contents: Result<Vec<u8>, String>,
}

/// Rehearses the advice for a script that does not fit or grows with every step.
pub fn rehearse_advice(
    runner: &mut dyn Runner,
    question: &Question,
    as_it_is: AsItIs,
) -> Candidates {
    let mut bench = Bench::new(runner, question);
    let rehearsed = match &as_it_is {
        AsItIs::DoesNotFit { needed_bytes, .. } => bench.against_the_card(*needed_bytes),
        AsItIs::Fits {
            grows_by_bytes: Some(bytes),
            ..
        } => bench.against_growth(*bytes),
        // The script needs no help, or fails for another reason.
        _ => {
            bench.leave_what_cannot_be_rehearsed();
            Ok(())
        }
    };
    Candidates {
        candidates: bench.finish(),
        as_it_is,
        stop: rehearsed.err(),
    }
}

/// Rehearses the script as it is.
pub fn as_it_is(runner: &mut dyn Runner) -> Result<AsItIs, Stop> {
    let run = Run::even_if_timed_out(runner.rehearse(&Rehearsal::as_it_is()))?;
    let processes = &run.findings.processes;
    Ok(match Outcome::of(&run) {
        Outcome::Fits(peaks) => AsItIs::Fits {
            peaks,
            stopped_after_steps: run
                .stopped_by_step_limit()
                .then(|| processes.iter().map(|process| process.steps).max())
                .flatten(),
            grows_by_bytes: growth_per_step(processes),
        },
        Outcome::DoesNotFit(place) => AsItIs::DoesNotFit {
            place,
            needed_bytes: match need(runner, &[], &run)?.need {
                Need::Found(smallest) => Some(smallest.device_bytes),
                Need::Unknown(_) => None,
            },
        },
        Outcome::Fails { reason, .. } => AsItIs::Fails(reason),
    })
}

#[cfg(test)]
mod tests;
