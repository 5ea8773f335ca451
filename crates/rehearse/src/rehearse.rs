//! The one way to get a run: a rehearsal goes in, a run or a stop comes out.

use crate::change::Change;
use crate::judge::Run;
use crate::observer::Purpose;
use crate::stop::Stop;
use crate::{SizePoint, SizePointReport};

/// One rehearsal of a job: what it does differently, and what it is for.
#[derive(Clone, Debug, PartialEq)]
pub struct Rehearsal {
    pub purpose: Purpose,
    pub changes: Vec<Change>,
    pub records: Records,
}

/// What a rehearsal records besides its figures. It is faster if it records nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Records {
    Nothing,
    /// The memory with its owners, if the job asks for it, and with that the allocator's history.
    Memory,
    /// The allocator's history, even if the job asks for no recording.
    History,
}

impl Rehearsal {
    /// The job as it is, with everything that it records.
    pub fn as_it_is() -> Self {
        Self {
            purpose: Purpose::AsItIs,
            changes: Vec::new(),
            records: Records::Memory,
        }
    }

    /// A rehearsal for its figures only.
    pub fn figures(purpose: Purpose, changes: Vec<Change>) -> Self {
        Self {
            purpose,
            changes,
            records: Records::Nothing,
        }
    }
}

/// Carries rehearsals out: in whole runs, or in forks.
pub trait Rehearse {
    fn rehearse(&mut self, rehearsal: &Rehearsal) -> Result<Run, Stop>;

    /// Rehearses independent rehearsals, at the same time if possible; returns the results in their order. After a stop
    /// that ends everything, nothing more is rehearsed: it is the last result.
    fn rehearse_all(&mut self, rehearsals: &[Rehearsal]) -> Vec<Result<Run, Stop>> {
        let mut results = Vec::new();
        for one in rehearsals {
            results.push(self.rehearse(one));
            if ends_everything(&results) {
                break;
            }
        }
        results
    }
}

/// Whether the last result is a stop after which nothing more may be rehearsed: any but a time limit.
pub(crate) fn ends_everything(results: &[Result<Run, Stop>]) -> bool {
    !matches!(results.last(), None | Some(Ok(_) | Err(Stop::TimedOut(_))))
}

/// Carries whole runs out, and can hold the script where a size is set.
pub trait Runner: Rehearse {
    /// Runs the script up to `point`, with `changes`, and holds it there for forks.
    fn hold_at(&mut self, point: &SizePoint, changes: &[Change]) -> Result<Held<'_>, Stop>;
}

/// A script on its way to a size point.
pub enum Held<'a> {
    /// It waits there. Rehearsals of [`Sizes`](crate::Sizes) at this point continue copies of it.
    Waiting {
        seen: SizePointReport,
        forks: Box<dyn Rehearse + 'a>,
    },
    /// It ended: it never reached the point, or a fork there would not be sound, as `seen` says.
    Ended {
        seen: SizePointReport,
        run: Box<Run>,
    },
}
