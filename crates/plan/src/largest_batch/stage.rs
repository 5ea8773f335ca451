//! One stage of a search: which sizes are left to rehearse, and whether the size has any effect at all. Pure.

use std::collections::BTreeMap;

use ghostgpu_rehearse::{EXIT_FAILURE, Outcome, Reason, Run};
use ghostgpu_session::TrainingData;

use super::search::Search;
use crate::verdict::not_known;

/// If two sizes that differ by this factor allocate exactly the same, the size has no effect. Closer sizes may allocate
/// the same by chance, because PyTorch rounds every tensor up to 512 bytes.
const FAR_APART: u64 = 256;

/// The same, when no larger size is left to rehearse.
const FAR_APART_AT_THE_END: u64 = 8;

/// What was observed in a run that fits.
#[derive(Clone, Copy, Debug)]
struct Observed {
    total_allocated_bytes: u64,
    /// How many samples the training loader puts into a batch.
    loader_batch: Option<u64>,
}

/// A search that also checks what the script does with the sizes.
#[derive(Clone, Debug)]
pub struct Stage {
    pub search: Search,
    observed: BTreeMap<u64, Observed>,
    /// The largest size that the data allows.
    pub all_samples: Option<u64>,
    /// By size: why a part of the training was not rehearsed with it.
    not_reached: BTreeMap<u64, String>,
    /// Every size from this one on does the same.
    pub same_from: Option<u64>,
    /// Whether the script has trained with some size.
    pub has_stepped: bool,
}

impl Stage {
    /// `samples` is the number of samples of the data, if known.
    pub fn new(search: Search, samples: Option<u64>) -> Self {
        let mut stage = Self {
            search,
            observed: BTreeMap::new(),
            not_reached: BTreeMap::new(),
            all_samples: None,
            same_from: None,
            has_stepped: false,
        };
        if let Some(samples) = samples {
            stage.bound(samples);
        }
        stage
    }

    /// Notes the run with this size.
    pub fn note(&mut self, size: u64, run: &Run) {
        let processes = &run.findings.processes;
        let makes_steps = processes.iter().any(|process| process.steps > 0);
        self.has_stepped |= makes_steps;
        let outcome = match Outcome::of(run) {
            // A batch larger than the data, of which loaders with `drop_last` make none.
            Outcome::Fits(_) if !makes_steps && self.has_stepped => Outcome::Fails {
                reason: Reason::NoStep,
                code: EXIT_FAILURE,
            },
            outcome => outcome,
        };
        let data = processes
            .iter()
            .filter_map(|process| process.training_data)
            .max_by_key(|data| data.samples);
        if outcome.peaks().is_some() {
            let totals = processes
                .iter()
                .map(|process| process.total_allocated_bytes);
            let observed = Observed {
                total_allocated_bytes: totals.sum(),
                loader_batch: data.and_then(|data| data.batch),
            };
            self.observed.insert(size, observed);
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

    /// Two sizes that do exactly the same, if all sizes so far do.
    pub fn without_effect(&self) -> Option<(u64, u64)> {
        if self.has_effect() {
            return None;
        }
        let apart = match self.search.next() {
            Some(_) => FAR_APART,
            None => FAR_APART_AT_THE_END,
        };
        let &largest = self.observed.last_key_value()?.0;
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

    /// This size and a smaller one that does the same. They must have led to the same batch of the loader or, if that is
    /// unknown, differ by the factor `apart`.
    fn same_as(&self, size: u64, apart: u64) -> Option<(u64, u64)> {
        let observed = self.observed.get(&size)?;
        if observed.total_allocated_bytes == 0 {
            return None;
        }
        let mut smaller = self.observed.range(..size);
        let same = smaller.find(|(smaller, other)| {
            let is_same = other.total_allocated_bytes == observed.total_allocated_bytes;
            let tells = match (other.loader_batch, observed.loader_batch) {
                (Some(one), Some(another)) => one == another,
                _ => size / **smaller >= apart,
            };
            is_same && tells
        });
        same.map(|(&smaller, _)| (smaller, size))
    }

    /// Whether any two sizes did different things.
    fn has_effect(&self) -> bool {
        let mut totals = self
            .observed
            .values()
            .map(|observed| observed.total_allocated_bytes);
        let first = totals.next();
        totals.any(|total| Some(total) != first)
            || self
                .search
                .outcomes()
                .values()
                .any(|outcome| outcome.peaks().is_none())
    }
}

/// The size with which one batch contains all samples. The loader's batch may be a fraction or a multiple of the size,
/// because an argument may set several batches at once.
fn most_for(size: u64, data: TrainingData) -> Option<u64> {
    let batch = data.batch.filter(|batch| *batch > 0)?;
    let most = u128::from(size) * u128::from(data.samples) / u128::from(batch);
    u64::try_from(most).ok()
}
