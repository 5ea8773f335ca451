//! How the memory of a job grows with its batch and with its sequence: found by rehearsing it at a few
//! sizes, with unlimited memory.

mod line;
mod measure;
mod sequence;

use std::ffi::OsString;

use ghostgpu_rehearse::{OutOfMemory, Outcome, Reason, SizePoint};

pub use line::{Deviation, Growth, growth};
pub use measure::measure;

/// Which sizes of a job to vary, and where they are set.
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
    /// In GhostGPU's own script (`estimate`), together with the batch.
    Own,
    /// An argument of the script.
    Argument(String),
    /// Nowhere: batches are cut to fewer tokens as they leave the `DataLoader`.
    InBatches,
}

/// How memory grows with both sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaling {
    pub batch: Series,
    pub sequence: Series,
}

/// The results of rehearsals at several sizes.
#[derive(Clone, Debug, PartialEq)]
pub enum Series {
    Measured {
        set_through: SetThrough,
        /// The job's own size.
        own: u64,
        /// In ascending order of sizes.
        outcomes: Vec<(u64, Outcome)>,
    },
    Unknown(NoSeries),
}

/// What sets a size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetThrough {
    /// An argument of the script.
    Argument(String),
    /// The place in the script that the agent reports.
    Place(String),
    /// The tokens that GhostGPU's own script generates.
    Tokens,
    /// Batches are cut; the text names their tensors.
    CutBatches(String),
}

/// Why a size could not be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoSeries {
    /// The agent says why the size cannot be set.
    Problem(String),
    NoSuchArgument {
        option: String,
        similar: Vec<String>,
    },
    /// The script's own value is not known.
    NotArgparse {
        option: String,
    },
    NoLoader,
    OutOfMemory(OutOfMemory),
    Fails(Reason),
    /// Nothing says what sets the sequence.
    NothingSetsSequence,
    /// The batches have no sequence to cut; the reason, if the agent gives one.
    NoSequenceInBatches(Option<String>),
    /// The model takes no sequences.
    NoSequences,
    /// The job did not complete as it is.
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
    /// How peak allocated memory grows, if there are enough sizes to tell.
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

/// Sizes around the job's own, none above `most`.
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
