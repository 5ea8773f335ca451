//! One stage of a search: the sizes in question, and whether a larger one does anything at all. Pure.

use std::collections::BTreeMap;

use ghostgpu_rehearse::{Outcome, Run};
use ghostgpu_session::TrainingData;

use super::search::Search;
use crate::verdict::not_known;

/// Sizes this many times apart that do exactly the same show that the size does nothing. Neighbours may: PyTorch
/// rounds every tensor up to 512 bytes.
const FAR_APART: u64 = 256;

/// The same, where nothing larger is to be rehearsed.
const FAR_APART_AT_THE_END: u64 = 8;

/// What a size that fits did.
#[derive(Clone, Copy, Debug)]
struct Did {
    total_allocated_bytes: u64,
    /// How many samples the training loader puts into a batch.
    loader_batch: Option<u64>,
}

/// A search that also looks at what the script does with the sizes.
#[derive(Clone, Debug)]
pub struct Stage {
    pub search: Search,
    did: BTreeMap<u64, Did>,
    /// The most that the data allow.
    pub all_samples: Option<u64>,
    /// Why a part of the training was not rehearsed with a size.
    not_reached: BTreeMap<u64, String>,
    /// From this size on, larger ones do the same.
    pub same_from: Option<u64>,
}

impl Stage {
    /// A stage of a search on data with so many samples, where that is known.
    pub fn new(search: Search, samples: Option<u64>) -> Self {
        let mut stage = Self {
            search,
            did: BTreeMap::new(),
            not_reached: BTreeMap::new(),
            all_samples: None,
            same_from: None,
        };
        if let Some(samples) = samples {
            stage.bound(samples);
        }
        stage
    }

    /// Writes down what a run with this size came to.
    pub fn note(&mut self, size: u64, run: &Run) {
        let outcome = Outcome::of(run);
        let processes = &run.findings.processes;
        let data = processes
            .iter()
            .filter_map(|process| process.training_data)
            .max_by_key(|data| data.samples);
        if outcome.peaks().is_some() {
            let totals = processes
                .iter()
                .map(|process| process.total_allocated_bytes);
            let did = Did {
                total_allocated_bytes: totals.sum(),
                loader_batch: data.and_then(|data| data.batch),
            };
            self.did.insert(size, did);
            if let Some(because) = not_known(run) {
                self.not_reached.insert(size, because);
            }
        }
        self.search.note(size, outcome);
        if let Some(most) = data.and_then(|data| most_for(size, data)) {
            self.bound(most);
        }
        if self.same_from.is_none()
            && let Some((same, _)) = self.same_as(size, FAR_APART)
            && self.has_effect()
        {
            self.same_from = Some(same);
            self.search.limit(same);
        }
    }

    /// Two sizes with which the script does exactly the same, where all of them do.
    pub fn without_effect(&self) -> Option<(u64, u64)> {
        if self.has_effect() {
            return None;
        }
        let apart = match self.search.next() {
            Some(_) => FAR_APART,
            None => FAR_APART_AT_THE_END,
        };
        let &largest = self.did.last_key_value()?.0;
        self.same_as(largest, apart)
    }

    /// Why a part of the training was not rehearsed with this size.
    pub fn not_reached(&self, size: u64) -> Option<String> {
        self.not_reached.get(&size).cloned()
    }

    fn bound(&mut self, most: u64) {
        let most = most.max(1).min(self.all_samples.unwrap_or(u64::MAX));
        self.all_samples = Some(most);
        self.search.limit(most);
    }

    /// A smaller size that does the same as this one, and this one. Where both are batches of a loader, any two
    /// tell; else they are `apart`.
    fn same_as(&self, size: u64, apart: u64) -> Option<(u64, u64)> {
        let did = self.did.get(&size)?;
        if did.total_allocated_bytes == 0 {
            return None;
        }
        let mut smaller = self.did.range(..size);
        let same = smaller.find(|(smaller, other)| {
            let is_same = other.total_allocated_bytes == did.total_allocated_bytes;
            let tells = match (other.loader_batch, did.loader_batch) {
                (Some(one), Some(another)) => one == another,
                _ => size / **smaller >= apart,
            };
            is_same && tells
        });
        same.map(|(&smaller, _)| (smaller, size))
    }

    /// Whether any two sizes did different things.
    fn has_effect(&self) -> bool {
        let mut totals = self.did.values().map(|did| did.total_allocated_bytes);
        let first = totals.next();
        totals.any(|total| Some(total) != first)
            || self
                .search
                .outcomes()
                .values()
                .any(|outcome| outcome.peaks().is_none())
    }
}

/// The size with which all samples are one batch; an argument may set a multiple of the loader's batch.
fn most_for(size: u64, data: TrainingData) -> Option<u64> {
    let batch = data.batch.filter(|batch| *batch > 0)?;
    let most = u128::from(size) * u128::from(data.samples) / u128::from(batch);
    u64::try_from(most).ok()
}
