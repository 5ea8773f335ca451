//! Progress of rehearsals, for whoever displays it.

use std::time::Duration;

/// Is told about rehearsals while they run, from whichever thread supervises them.
///
/// A script whose output the user sees is not announced.
pub trait Observer: Send + Sync {
    /// A rehearsal begins.
    fn begins(&self, purpose: &Purpose);

    /// It is still running; called about once a second.
    fn goes_on(&self);

    /// It has ended.
    fn ends(&self);

    /// A script whose output the user sees has been running for this long; called about once a second.
    fn goes_on_in_sight(&self, _elapsed: Duration) {}
}

/// What a rehearsal is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The script without any change.
    AsItIs,
    /// How much memory it needs, on cards with unlimited memory.
    Need,
    /// How much memory depends on assumed sizes.
    AssumedSizes,
    /// What it needs on the card with this name, with unlimited memory or with the card's own.
    OnCard { name: String, is_unlimited: bool },
    /// Whether it completes on cards with this much memory.
    SmallestMemory { bytes: u64 },
    /// Runs the script up to its size point.
    ReachingSizePoint,
    /// Another size; `count` numbers these rehearsals.
    Size {
        dimension: Dimension,
        size: u64,
        count: usize,
    },
    /// Confirms the batch that was found with a whole run.
    Confirmation { batch: u64 },
    /// A change that may help, in words.
    Candidate(String),
    /// A version of the script with corrected lines, in words: the `number`-th of several.
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

/// Ignores everything.
impl Observer for () {
    fn begins(&self, _: &Purpose) {}
    fn goes_on(&self) {}
    fn ends(&self) {}
}
