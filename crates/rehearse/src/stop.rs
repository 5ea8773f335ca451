//! Why there is no run.

use std::fmt;

use crate::failure::Failure;
use crate::judge::{EXIT_FAILURE, Run};

/// Why a rehearsal has no result.
///
/// Callers pass it on with `?`. Only a time limit may count as an outcome: see
/// [`Run::even_if_timed_out`](crate::Run::even_if_timed_out).
#[derive(Debug)]
pub enum Stop {
    /// A signal asked us to stop. All processes we started have been ended.
    Interrupted(i32),
    /// The script was ended at its time limit; the run has what it had reported by then.
    TimedOut(Box<Run>),
    /// The job cannot be rehearsed as it is: no such card, no torch, a script that declines (`estimate`).
    Refused(Failure),
    /// Something of our own failed: the run folder, the connection to a fork.
    Failed(Failure),
}

impl Stop {
    /// The exit code of a command that ends with it; for a signal, the one that a shell gives.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Interrupted(signal) => 128_u8.saturating_add(*signal as u8),
            Self::TimedOut(_) | Self::Refused(_) | Self::Failed(_) => EXIT_FAILURE,
        }
    }

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
