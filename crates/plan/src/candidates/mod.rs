//! What helps against an out-of-memory error: advice is rehearsed, one candidate after the other.
//!
//! Every piece of advice becomes a [`RehearsedCandidate`]: it works, it fails, or it was not rehearsed, and each
//! says why. [`Made`] is what was changed, as data.

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

/// What may help, with which script, on which card.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    pub advice: &'a [Advice],
    pub script: &'a Script,
    /// The script's own arguments.
    pub words: &'a [OsString],
    /// Where the batch is set.
    pub batch: SizePoint,
    /// What the card has.
    pub capacity_bytes: u64,
    /// So many steps are the beginning of what the job goes through, where that is more.
    pub first_steps: Option<u64>,
    /// Tricks of which it is known that they are enough: they are not rehearsed again.
    pub known: &'a [KnownTrick],
}

/// A trick that was rehearsed for itself on the same card, as a part of a plan: everything fits with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownTrick {
    pub peaks: Peaks,
    /// What it did.
    pub report: ChangeReport,
}

/// The text of a script.
#[derive(Clone, Debug)]
pub struct Script {
    /// What its file is called, without folders.
    pub name: String,
    /// What is in it, or why that cannot be read.
    pub contents: Result<Vec<u8>, String>,
}

/// Rehearses the advice for a script that does not fit or grows with every step.
pub fn rehearse_advice(
    runner: &mut dyn Runner,
    question: &Question,
    as_it_is: AsItIs,
) -> Result<Candidates, Stop> {
    let mut bench = Bench::new(runner, question);
    match &as_it_is {
        AsItIs::DoesNotFit { needed_bytes, .. } => bench.against_the_card(*needed_bytes)?,
        AsItIs::Fits {
            grows_by_bytes: Some(bytes),
            ..
        } => bench.against_growth(*bytes)?,
        // There is nothing to help against.
        _ => bench.leave_what_cannot_be_rehearsed(),
    }
    Ok(Candidates {
        candidates: bench.finish(),
        as_it_is,
    })
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
            // The card's own answer first: what would the job need?
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
