//! What would have helped: only settings that a replay has shown to help.

use ghostgpu_text::human;
use ghostgpu_whatif::Found;

/// A saving is worth mentioning if it is at least one part in this many of what is reserved.
const LEAST_SAVING: u64 = 50;

/// The results of replaying a history under common settings.
#[derive(Debug)]
pub enum WhatHelps {
    /// A request had failed.
    AfterFailure {
        found: Vec<Found>,
        /// The memory that was available.
        most_bytes: u64,
        /// What the recorded settings reserve with unlimited memory.
        unbounded_bytes: u64,
    },
    WithoutFailure {
        found: Vec<Found>,
        /// Peak reserved memory.
        recorded_bytes: u64,
    },
}

impl WhatHelps {
    /// Sentences about settings, each with the result of replaying this history.
    pub(super) fn sentences(&self) -> Vec<String> {
        match self {
            Self::AfterFailure {
                found,
                most_bytes,
                unbounded_bytes,
            } => after_a_failure(found, *most_bytes, *unbounded_bytes),
            Self::WithoutFailure {
                found,
                recorded_bytes,
            } => without_a_failure(found, *recorded_bytes),
        }
    }
}

fn after_a_failure(found: &[Found], most: u64, unbounded: u64) -> Vec<String> {
    let serves = |found: &&Found| found.fits() && found.answer.survived.is_empty();
    let mut sentences: Vec<String> = found
        .iter()
        .filter(serves)
        .take(3)
        .map(|each| {
            format!(
                "PYTORCH_CUDA_ALLOC_CONF={}: in a replay of this history no request fails, and at most {} \
                 is reserved",
                each.settings.text,
                human(each.answer.peak_reserved_bytes())
            )
        })
        .collect();
    if sentences.is_empty() {
        sentences.push(format!(
            "no allocator setting helps: none of the usual {} fits in the {} that was available. The job \
             needs a larger card, or less memory",
            found.len(),
            human(most)
        ));
    }
    sentences.push(format!(
        "with unlimited memory, the recorded settings would reserve {}",
        human(unbounded)
    ));
    sentences
}

fn without_a_failure(found: &[Found], recorded: u64) -> Vec<String> {
    let saves = |found: &&Found| {
        let saved = recorded.saturating_sub(found.answer.peak_reserved_bytes());
        saved.saturating_mul(LEAST_SAVING) >= recorded.max(1)
    };
    let sentences: Vec<String> = found
        .iter()
        .filter(saves)
        .take(3)
        .map(|each| {
            let reserved = each.answer.peak_reserved_bytes();
            format!(
                "PYTORCH_CUDA_ALLOC_CONF={}: a replay reserves {} at most, {} less",
                each.settings.text,
                human(reserved),
                human(recorded - reserved)
            )
        })
        .collect();
    match sentences.is_empty() {
        true => vec![format!(
            "none of the usual {} allocator settings saves a fiftieth of what is reserved, in replays \
             of this history",
            found.len()
        )],
        false => sentences,
    }
}
