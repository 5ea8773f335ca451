//! How the memory of a job grows with its batch and with its sequence: found by rehearsing it at a few
//! sizes, with unlimited memory.

mod line;
mod measure;
mod sequence;

use std::ffi::OsString;

use ghostgpu_rehearse::{OutOfMemory, Outcome, Reason, SizePoint};

pub use line::{Deviation, Growth, growth};
pub use measure::measure;

/// Which sizes of a job are to change, and where.
#[derive(Clone, Debug)]
pub struct Goal {
    pub batch: SizePoint,
    pub sequence: SequencePoint,
    /// The script's own arguments, which may hold its own sizes.
    pub words: Vec<OsString>,
}

/// Where the length of sequences is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SequencePoint {
    /// A script of ours, which takes it with the batch.
    Own,
    /// An argument of the script.
    Argument(String),
    /// Nowhere: the batches are cut to fewer tokens as they come from the `DataLoader`.
    InBatches,
}

/// How memory grows with both sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaling {
    pub batch: Series,
    pub sequence: Series,
}

/// What rehearsals at several sizes came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Series {
    Measured {
        set_through: SetThrough,
        /// The job's own size.
        own: u64,
        /// In rising order of sizes.
        outcomes: Vec<(u64, Outcome)>,
    },
    Unknown(NoSeries),
}

/// What sets a size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetThrough {
    /// An argument of the script.
    Argument(String),
    /// The place that the agent names.
    Place(String),
    /// The tokens that a script of ours makes.
    Tokens,
    /// Batches that are cut; which tensors of them.
    CutBatches(String),
}

/// Why a size could not be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoSeries {
    /// The agent says what keeps it from being set.
    Problem(String),
    NoSuchArgument {
        option: String,
        similar: Vec<String>,
    },
    /// Its own value is not known.
    NotArgparse {
        option: String,
    },
    NoLoader,
    OutOfMemory(OutOfMemory),
    Fails(Reason),
    /// Nothing says what sets the sequence.
    NothingSetsSequence,
    /// The batches have no sequence that could be cut; why, where the agent says it.
    NoSequenceInBatches(Option<String>),
    /// The model takes no sequences.
    NoSequences,
    /// The job itself did not run to its end.
    JobDidNotEnd,
}

impl Scaling {
    pub fn unknown(because: NoSeries) -> Self {
        Self {
            batch: Series::Unknown(because.clone()),
            sequence: Series::Unknown(because),
        }
    }
}

impl Series {
    /// How peak allocated grows, if that can be told.
    pub fn growth(&self) -> Option<Growth> {
        let Self::Measured { outcomes, .. } = self else {
            return None;
        };
        let points: Vec<(u64, u64)> = outcomes
            .iter()
            .filter_map(|(size, outcome)| Some((*size, outcome.peaks()?.allocated_bytes)))
            .collect();
        growth(&points)
    }
}

/// Sizes below and above one that is asked about.
fn around(size: u64, most: Option<u64>) -> Vec<u64> {
    let mut sizes = vec![
        size / 4,
        size / 2,
        size,
        size.saturating_mul(3) / 2,
        size.saturating_mul(2),
    ];
    sizes.retain(|&each| each > 0 && most.is_none_or(|most| each <= most));
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests;
