//! Why there is no run.

use std::fmt;

use crate::failure::Failure;
use crate::judge::Run;

/// A rehearsal that led to no run, and why.
///
/// Whoever asked for several rehearsals passes it on with `?`. Only a time limit may be counted as an
/// outcome among others: see [`Outcome::of`](crate::Outcome::of).
#[derive(Debug)]
pub enum Stop {
    /// A signal asked us to end. Everything that was started has been ended.
    Interrupted(i32),
    /// The script was ended at its time limit; what it had left behind by then.
    TimedOut(Box<Run>),
    /// The job cannot be rehearsed as it is: no such card, no torch, a script that declines.
    Refused(Failure),
    /// Something of our own did not work: the run's folder, the line to a fork.
    Failed(Failure),
}

impl Stop {
    /// A failure of our own, in one line with its cause.
    pub(crate) fn failed(what: impl fmt::Display, cause: impl fmt::Display) -> Self {
        Self::Failed(Failure::new(format!("{what}: {cause}")))
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Refused(failure)
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted(signal) => write!(formatter, "interrupted by signal {signal}"),
            Self::TimedOut(_) => formatter.write_str("the script did not end in time (--timeout)"),
            Self::Refused(failure) | Self::Failed(failure) => failure.fmt(formatter),
        }
    }
}

impl std::error::Error for Stop {}
