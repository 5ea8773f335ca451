//! The results of rehearsing advice, as data.

use ghostgpu_device::Card;
use ghostgpu_explain::{Advice, Effect};
use ghostgpu_rehearse::{OutOfMemory, Peaks, Reason, SizePoint, Stop};

use super::fixed_lines::{FixedLine, NoFix};
use crate::largest_batch::NotFound;

/// Everything that was rehearsed.
#[derive(Debug)]
pub struct Candidates {
    pub as_it_is: AsItIs,
    /// In the order of the advice; the script's own switches come last.
    pub candidates: Vec<RehearsedCandidate>,
    /// What ended the rehearsals before all advice was rehearsed.
    pub stop: Option<Stop>,
}

/// The script without any change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AsItIs {
    Fits {
        peaks: Peaks,
        /// The number of steps after which the rehearsal ended the script, if it did.
        stopped_after_steps: Option<u64>,
        /// By how much its memory grew per step, if it did.
        grows_by_bytes: Option<u64>,
    },
    DoesNotFit {
        place: OutOfMemory,
        needed_bytes: Option<u64>,
    },
    Fails(Reason),
}

/// A change that may help, and its outcome.
#[derive(Debug)]
pub struct RehearsedCandidate {
    /// Where it comes from; `None` for the script's own switches.
    pub advice: Option<Advice>,
    /// What it does to the training's numbers.
    pub effect: Effect,
    pub outcome: CandidateOutcome,
}

/// Whether a candidate helps.
#[derive(Debug)]
pub enum CandidateOutcome {
    Works {
        made: Made,
        peaks: Peaks,
        /// The memory of the card on which it works.
        total_bytes: u64,
        /// The growth per step that the change ends, if that was the problem.
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
    /// An environment variable.
    Variable {
        name: String,
        value: String,
    },
    /// A change by the agent: what it did, and a line of code that does the same.
    Code {
        did: Option<String>,
        line: Option<String>,
        /// Why it changes the results of this script, although it usually does not.
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
    /// The advice is to empty the card, but the rehearsal already had an empty one.
    OnEmptyCardToo,
    OutOfMemory(OutOfMemory),
    Script(Reason),
    /// It fits but still grows with every step, by this many bytes.
    StillGrows(u64),
    /// A part of the training was not rehearsed; why.
    NotReached(String),
    NoBatch(NotFound),
}

/// Why a candidate was not rehearsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotRehearsed {
    /// It cannot be rehearsed; the advice says why.
    Impossible,
    NothingToChange,
    NothingToChangeBefore(OutOfMemory),
    /// There is no argument for the length, and no batch with tokens.
    NoLength,
    NoFix(NoFix),
}
