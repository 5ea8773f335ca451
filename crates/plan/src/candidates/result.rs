//! What came of advice, as data.

use ghostgpu_device::Card;
use ghostgpu_explain::{Advice, Effect};
use ghostgpu_rehearse::{OutOfMemory, Peaks, Reason, SizePoint};

use super::fixed_lines::{FixedLine, NoFix};
use crate::largest_batch::NotFound;

/// Everything that was rehearsed.
#[derive(Debug)]
pub struct Candidates {
    pub as_it_is: AsItIs,
    /// In the order of the advice, the script's own switches last.
    pub candidates: Vec<RehearsedCandidate>,
}

/// The script without any change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AsItIs {
    Fits {
        peaks: Peaks,
        /// The script was stopped after so many steps.
        stopped_after_steps: Option<u64>,
        /// By how much its memory grew with every step, if it did.
        grows_by_bytes: Option<u64>,
    },
    DoesNotFit {
        place: OutOfMemory,
        needed_bytes: Option<u64>,
    },
    Fails(Reason),
}

/// A change that may help, and what it came to.
#[derive(Debug)]
pub struct RehearsedCandidate {
    /// Where it comes from; none for what the script itself offers.
    pub advice: Option<Advice>,
    /// What it does to the training's numbers.
    pub effect: Effect,
    pub outcome: CandidateOutcome,
}

/// What a candidate came to.
#[derive(Debug)]
pub enum CandidateOutcome {
    Works {
        made: Made,
        peaks: Peaks,
        /// Of the card with which it works.
        total_bytes: u64,
        /// Memory grew by so much with every step before, and no more.
        ends_growth_of_bytes: Option<u64>,
    },
    Fails {
        made: Option<Made>,
        because: Failed,
    },
    Not(NotRehearsed),
}

/// What was changed.
#[derive(Clone, Debug, PartialEq)]
pub enum Made {
    /// A variable of the environment.
    Variable {
        name: String,
        value: String,
    },
    /// A change by the agent: what it did, and the line that does the same.
    Code {
        did: Option<String>,
        line: Option<String>,
        /// Why results are others with it, where they usually are the same.
        other_results: Option<String>,
    },
    /// The largest batch that fits; the script's own, and where it is set.
    Batch {
        batch: u64,
        own: Option<u64>,
        point: SizePoint,
        place: String,
    },
    Fixes(Vec<FixedLine>),
    /// A switch of the script.
    Switch(String),
    /// An argument of the script.
    Argument {
        option: String,
        value: u64,
        before: u64,
    },
    /// Batches cut to fewer tokens.
    CutBatches {
        tokens: u64,
        of: u64,
    },
    Card(&'static Card),
}

/// Why a candidate does not help.
#[derive(Debug)]
pub enum Failed {
    /// That is how it has just been rehearsed.
    OnEmptyCardToo,
    OutOfMemory(OutOfMemory),
    Script(Reason),
    /// It fits and still grows with every step.
    StillGrows(u64),
    /// A part of the training was not rehearsed; why.
    NotReached(String),
    NoBatch(NotFound),
}

/// Why a candidate was not rehearsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotRehearsed {
    /// No rehearsal can show it; the advice says why.
    Impossible,
    NothingToChange,
    NothingToChangeBefore(OutOfMemory),
    /// There is no argument for the length, and no batch with tokens.
    NoLength,
    NoFix(NoFix),
}
