//! What would have helped: settings that a replay has shown to, and nothing else.

use ghostgpu_text::human;
use ghostgpu_whatif::Found;

/// Worth mentioning: a fiftieth of what is reserved.
const LEAST_SAVING: u64 = 50;

/// What replays of a history under the usual settings came to.
#[derive(Debug)]
pub enum WhatHelps {
    /// A request had failed.
    AfterFailure {
        found: Vec<Found>,
        /// What there was.
        most_bytes: u64,
        /// What the recorded settings reserve with memory enough.
        unbounded_bytes: u64,
    },
    WithoutFailure {
        found: Vec<Found>,
        /// What was reserved at most.
        recorded_bytes: u64,
    },
}

impl WhatHelps {
    /// Sentences on settings, each with what a replay of this very history came to.
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
                "PYTORCH_CUDA_ALLOC_CONF={}: in a replay of this history no request fails, and {} are \
                 reserved at most",
                each.settings.text,
                human(each.answer.peak_reserved_bytes())
            )
        })
        .collect();
    if sentences.is_empty() {
        sentences.push(format!(
            "no allocator setting helps: the usual {} were replayed with the {} that there were. The \
             job needs more memory, or must need less of it",
            found.len(),
            human(most)
        ));
    }
    sentences.push(format!(
        "with memory enough, the same settings reserve {} for what was recorded",
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
