//! Who hears what is being rehearsed.

use std::time::Duration;

/// Hears about rehearsals while they run, from whichever thread looks after them.
///
/// A script whose output the user sees is not announced: it speaks for itself, if at all.
pub trait Observer: Send + Sync {
    /// A rehearsal begins.
    fn begins(&self, purpose: &Purpose);

    /// It is still running; called about once a second.
    fn goes_on(&self);

    /// It has ended.
    fn ends(&self);

    /// A script whose output the user sees has been running for so long; called about once a second.
    fn goes_on_in_sight(&self, _elapsed: Duration) {}
}

/// What a rehearsal is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The script without any change.
    AsItIs,
    /// How much memory it needs, on cards with unlimited memory.
    Need,
    /// How much memory hangs on sizes that were assumed.
    AssumedSizes,
    /// What it does on another card, by its name; with unlimited memory, or with its own.
    OnCard { name: String, is_unlimited: bool },
    /// Whether it ends on cards with so much memory.
    SmallestMemory { bytes: u64 },
    /// The way to the place where a size is set.
    ReachingSizePoint,
    /// Another size; the how many-th it is.
    Size {
        dimension: Dimension,
        size: u64,
        count: usize,
    },
    /// The batch that was found, in a run of its own.
    Confirmation { batch: u64 },
    /// A change that may help, in words.
    Candidate(String),
    /// A text of the script with corrected lines, in words; which of how many.
    Fix {
        name: String,
        number: usize,
        of: usize,
    },
}

/// A size of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    Batch,
    Sequence,
}

/// Hears nothing.
impl Observer for () {
    fn begins(&self, _: &Purpose) {}
    fn goes_on(&self) {}
    fn ends(&self) {}
}
