//! What a search for the largest batch finds.

use std::collections::BTreeMap;

use ghostgpu_rehearse::{OutOfMemory, Outcome, Reason, Run, SizePoint, SizePointReport};
use serde::Serialize;

use super::search::Search;
use super::stage::Stage;

/// The result of a search.
#[derive(Debug)]
pub enum LargestBatch {
    Found(Box<Found>),
    NotFound(NotFound),
}

/// The largest batch that fits, and what was seen on the way.
#[derive(Debug)]
pub struct Found {
    pub batch: u64,
    pub point: SizePoint,
    pub seen: SizePointReport,
    /// The outcome of every batch that was rehearsed with the job's own extent, or that ran out of memory in the first
    /// steps.
    pub outcomes: BTreeMap<u64, Outcome>,
    /// The batch that contains all samples of the data.
    pub samples: Option<u64>,
    /// Why a part of the training was not rehearsed with this batch.
    pub not_reached: Option<String>,
    /// The script does the same with every larger batch, because there is no more data.
    pub is_all_there_is: bool,
    /// A smaller batch that does not fit.
    pub gap: Option<u64>,
    /// The larger batch that was found first, if it fits only for some placements of segments by the driver.
    pub lowered_from: Option<u64>,
    /// Why the script was started anew for every batch.
    pub whole_because: Option<WholeBecause>,
    /// The run with this batch, if it was a whole run.
    pub(super) run: Option<Run>,
}

/// Why rehearsals were whole runs instead of forks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WholeBecause {
    /// The user asked for whole runs.
    Asked,
    /// Ranks meet as the processes of one run; forks of them could not meet.
    SeveralCards,
    /// The agent says why a fork at that point would not be sound.
    Unforkable(String),
    /// The script fails in a fork, for example because forks share its open files.
    ForkFails(Reason),
    /// Forking itself did not work.
    ForkingFailed(String),
    /// The script does not read its arguments with `argparse`.
    NotArgparse,
}

/// Why there is no largest batch.
#[derive(Debug)]
pub enum NotFound {
    /// No `DataLoader` was iterated. `options` are the script's options that look as if they set a batch.
    NoLoader { options: Vec<String> },
    /// The agent says why the batch cannot be set at this point.
    NotSettable {
        problem: String,
        options: Vec<String>,
    },
    NoOption {
        option: String,
        similar: Vec<String>,
    },
    /// Even the smallest batch does not fit: 1, or 2 if the script fails with 1.
    NotEvenOne { batch: u64, place: OutOfMemory },
    /// The script does exactly the same with two sizes, so the option does not set the batch.
    NoEffect {
        point: SizePoint,
        smaller: u64,
        larger: u64,
    },
    /// It runs out of memory before the first batch.
    DoesNotFit(Box<Run>),
    Fails {
        batch: Option<u64>,
        reason: Reason,
        code: u8,
        last_lines: Vec<String>,
    },
}

/// How a whole run with the batch that was found compares with the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confirmation {
    /// It has the same figures as the fork, to the byte.
    Equal,
    /// It fits too, with other figures.
    FitsDifferently,
    /// It fits, but the search had not rehearsed this batch.
    NotCompared,
    /// It does not fit, or fails.
    Contradicts,
    /// The search was made of whole runs.
    FoundByRuns,
}

/// Why a finished search found no batch; `None` if it found one.
pub fn nothing_found(search: &Search, last_lines: Vec<String>) -> Option<NotFound> {
    if search.largest().is_some() {
        return None;
    }
    // The script may fail with a single sample (batch normalisation); then the answer is that two do not fit.
    let mut smallest = search.outcomes().iter();
    let too_large = smallest
        .clone()
        .take(2)
        .find_map(|(&batch, outcome)| match outcome {
            Outcome::DoesNotFit(place) => Some((batch, place.clone())),
            _ => None,
        });
    if let Some((batch, place)) = too_large.filter(|found| found.0 <= 2) {
        return Some(NotFound::NotEvenOne { batch, place });
    }
    let (&batch, outcome) = smallest.next()?;
    match outcome {
        Outcome::Fails { reason, code } => Some(NotFound::Fails {
            batch: Some(batch),
            reason: reason.clone(),
            code: *code,
            last_lines,
        }),
        _ => None,
    }
}

pub fn found(
    stage: Stage,
    point: &SizePoint,
    seen: SizePointReport,
    whole_because: Option<WholeBecause>,
) -> Found {
    let batch = stage.search.largest().unwrap_or_default();
    Found {
        batch,
        point: point.clone(),
        gap: stage.search.gap(),
        samples: seen.samples.or(stage.all_samples),
        not_reached: stage.not_reached(batch),
        is_all_there_is: stage.same_from == Some(batch),
        lowered_from: None,
        seen,
        outcomes: stage.search.outcomes().clone(),
        whole_because,
        run: None,
    }
}
