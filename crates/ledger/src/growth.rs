//! Memory that grows from step to step.
//!
//! The same point of every step is compared: where its optimizer step ends. What a loop merely replaces (its
//! loss, its batch) is made in one step and gone by the end of the next. So growth is claimed for a place if
//! what it made in at least two earlier steps is still there, and if it holds more at each of the last ends
//! than at the one before. Optimizer state, cached tables and gradients come once, and do neither.

use std::collections::{BTreeMap, BTreeSet};

use ghostgpu_recording::{Category, NameId, StackId};

use crate::card_ledger::CardLedger;
use crate::moment::Moment;
use crate::places::{Place, Places};

/// So many ends of steps are needed for a claim.
const FEWEST_STEPS: usize = 3;

/// Optimizers may take their state in turns (two of them, of a GAN): more steps are needed.
const FEWEST_STEPS_OF_OPTIMIZERS: usize = 5;

/// Of very many steps the last are compared: what grows over them grows.
const MOST_STEPS: usize = 1000;

/// The places that grow most are looked at; more are no help to anybody.
const MOST_PLACES: usize = 64;

/// Memory that grows from step to step, on one card.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Growth {
    /// How many steps were compared.
    pub steps: usize,
    /// What grows; the fastest first.
    pub sources: Vec<GrowthSource>,
    /// All of it together, on average.
    pub bytes_per_step: u64,
    /// After so many steps more, the rest of the card is full.
    pub steps_until_full: Option<u64>,
}

/// A line that makes memory which is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrowthSource {
    pub place: Place,
    /// Words for it.
    pub label: String,
    pub category: Category,
    /// Of the largest allocation that is kept.
    pub stack: StackId,
    /// The variable that keeps it, in words; empty where that was not seen.
    pub kept_in: String,
    /// Bytes of the blocks that are live at the end of each compared step.
    pub bytes_at_ends: Vec<u64>,
    /// On average, without the first step where there are enough others.
    pub bytes_per_step: u64,
    /// Allocations that are there at the last end.
    pub count: u64,
}

#[derive(Default)]
struct Survivors {
    /// Ends of the steps that made them, by number.
    made_in: BTreeSet<usize>,
    block_bytes: u64,
    count: u64,
    largest_bytes: u64,
    stack: StackId,
    /// The steps whose survivors bear a name.
    names: BTreeMap<NameId, BTreeSet<usize>>,
}

impl Survivors {
    /// The name of most of them. A variable that each step replaces names a step here and there; what
    /// keeps all of them names those of one step and of the next.
    fn name(&self) -> NameId {
        let keeps = |steps: &BTreeSet<usize>| {
            let mut pairs = steps.iter().zip(steps.iter().skip(1));
            pairs.any(|(one, next)| one + 1 == *next)
        };
        let keepers = self.names.iter().filter(|(_, steps)| keeps(steps));
        // Of names that keep as much, the first.
        let most = keepers.max_by_key(|(name, steps)| (steps.len(), std::cmp::Reverse(**name)));
        most.map(|(name, _)| *name).unwrap_or_default()
    }
}

impl CardLedger<'_> {
    /// Results and what is saved for backward bear the name of the variable that keeps them, or none.
    fn keeper(&self, category: Category, name: NameId) -> String {
        let is_named_by_variable = matches!(
            category,
            Category::Kept | Category::Temporary | Category::Activation
        );
        let text = self.recording.names.texts.get(name.0 as usize);
        let text = text.filter(|_| is_named_by_variable);
        text.cloned().unwrap_or_default()
    }

    /// What grows from step to step. Three complete steps are needed to say so.
    pub fn growth(&self) -> Growth {
        let ends: Vec<Moment> = self
            .steps()
            .iter()
            .filter_map(|step| step.optimizer_done)
            .collect();
        let ends = &ends[ends.len().saturating_sub(MOST_STEPS)..];
        let mut growth = Growth {
            steps: ends.len(),
            ..Growth::default()
        };
        let Some(&last) = ends.last().filter(|_| ends.len() >= FEWEST_STEPS) else {
            return growth;
        };
        let places = Places::of(self.recording, self.card);
        let candidates = self.accumulating(&places, ends, last);
        let series = self.bytes_at_ends(&places, ends, &candidates);
        for (key, survivors) in candidates {
            let bytes_at_ends = series.get(&key).cloned().unwrap_or_default();
            let (place, category) = key;
            if is_growing(&bytes_at_ends, category) {
                growth.sources.push(GrowthSource {
                    label: places.label(&place),
                    place,
                    category,
                    stack: survivors.stack,
                    kept_in: self.keeper(category, survivors.name()),
                    bytes_per_step: per_step(&bytes_at_ends),
                    bytes_at_ends,
                    count: survivors.count,
                });
            }
        }
        // Stable: those that grow alike stay in the order of their places.
        growth
            .sources
            .sort_by_key(|source| std::cmp::Reverse(source.bytes_per_step));
        let rates = growth.sources.iter().map(|source| source.bytes_per_step);
        growth.bytes_per_step = rates.fold(0, u64::saturating_add);
        growth.steps_until_full = self.steps_until_full(growth.bytes_per_step);
        growth
    }

    /// Places of which something made in at least two earlier steps is live at the last end.
    fn accumulating(
        &self,
        places: &Places,
        ends: &[Moment],
        last: Moment,
    ) -> BTreeMap<(Place, Category), Survivors> {
        let mut all: BTreeMap<(Place, Category), Survivors> = BTreeMap::new();
        for (_, one) in self.live_at(last) {
            let Some(event) = one.allocated_at else {
                continue;
            };
            let made_in = ends.partition_point(|end| end.0 <= event as usize);
            let survivors = all.entry((places.place(one), one.category)).or_default();
            survivors.made_in.insert(made_in);
            survivors.block_bytes = survivors.block_bytes.saturating_add(one.block_bytes);
            survivors.count += 1;
            if one.requested_bytes > survivors.largest_bytes {
                survivors.largest_bytes = one.requested_bytes;
                survivors.stack = one.stack;
            }
            if one.name != NameId(0) {
                let named = survivors.names.entry(one.name).or_default();
                named.insert(made_in);
            }
        }
        let mut found: Vec<_> = all
            .into_iter()
            .filter(|((_, category), _)| *category != Category::Parameter)
            .filter(|(_, survivors)| {
                let earlier = survivors.made_in.range(..ends.len() - 1);
                earlier.count() >= 2
            })
            .collect();
        found.sort_by_key(|(_, survivors)| std::cmp::Reverse(survivors.block_bytes));
        found.truncate(MOST_PLACES);
        found.into_iter().collect()
    }

    /// What each candidate holds at each end.
    fn bytes_at_ends<T>(
        &self,
        places: &Places,
        ends: &[Moment],
        candidates: &BTreeMap<(Place, Category), T>,
    ) -> BTreeMap<(Place, Category), Vec<u64>> {
        // Changes at each end first, then sums: an allocation may live through very many.
        let mut series: BTreeMap<_, Vec<i128>> = candidates
            .keys()
            .map(|key| (key.clone(), vec![0; ends.len() + 1]))
            .collect();
        for one in &self.card.allocations {
            let passed = |event: u32| ends.partition_point(|end| end.0 <= event as usize);
            let first = one.allocated_at.map_or(0, passed);
            let after = one.freed_at.map_or(ends.len(), passed);
            // Most of what a step makes is gone before its end: no need to look where it was made.
            if first >= after {
                continue;
            }
            if let Some(changes) = series.get_mut(&(places.place(one), one.category)) {
                changes[first] += i128::from(one.block_bytes);
                changes[after] -= i128::from(one.block_bytes);
            }
        }
        let sums = |changes: Vec<i128>| {
            let sums = changes.iter().scan(0, |sum: &mut i128, change| {
                *sum += change;
                Some((*sum).clamp(0, u64::MAX.into()) as u64)
            });
            sums.take(ends.len()).collect()
        };
        let series = series.into_iter();
        series.map(|(key, changes)| (key, sums(changes))).collect()
    }

    /// How many steps more fit on the card beside the most that it held.
    fn steps_until_full(&self, bytes_per_step: u64) -> Option<u64> {
        let total = self.recording.about.gpu_total_bytes;
        let used = self
            .peak_reserved()
            .reserved_bytes
            .max(self.peak().allocated_bytes)
            .saturating_add(self.card.outside_bytes)
            .saturating_add(self.recording.other_processes_bytes(self.card));
        let free = total.checked_sub(used).filter(|_| total > 0)?;
        free.checked_div(bytes_per_step)
    }
}

/// More at each of the last ends than at the one before, and never less than before in the later half.
fn is_growing(bytes_at_ends: &[u64], category: Category) -> bool {
    let fewest = match category {
        Category::OptimizerState => FEWEST_STEPS_OF_OPTIMIZERS,
        _ => FEWEST_STEPS,
    };
    if bytes_at_ends.len() < fewest {
        return false;
    }
    let later = bytes_at_ends.len() / 2;
    let rises = |pairs: &[u64]| pairs.windows(2).filter(|pair| pair[1] > pair[0]).count();
    let falls = |pairs: &[u64]| pairs.windows(2).any(|pair| pair[1] < pair[0]);
    let last = &bytes_at_ends[bytes_at_ends.len() - fewest..];
    let pairs = bytes_at_ends.len() - 1;
    rises(last) == last.len() - 1
        && !falls(&bytes_at_ends[later.min(bytes_at_ends.len() - fewest)..])
        && rises(bytes_at_ends) * 2 >= pairs
}

/// The average rise; the first step is left out where there are enough others.
fn per_step(bytes_at_ends: &[u64]) -> u64 {
    let from = usize::from(bytes_at_ends.len() > FEWEST_STEPS);
    match &bytes_at_ends[from..] {
        [first, .., last] => {
            let steps = bytes_at_ends.len() - from - 1;
            last.saturating_sub(*first) / steps as u64
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_steady_rise_is_growth() {
        for (bytes, expected) in [
            (&[1, 2, 3][..], true),
            (&[0, 5, 10, 15], true),
            (&[7, 7, 7], false),
            (&[1, 2], false),
            (&[1, 2, 2], false),
            // A buffer that has filled up.
            (&[1, 2, 3, 4, 4, 4, 4], false),
            // A batch that is sometimes larger.
            (&[5, 3, 4, 6, 2, 3, 4], false),
            // Every second step only.
            (&[1, 1, 2, 2, 3, 3], false),
        ] {
            assert_eq!(is_growing(bytes, Category::Kept), expected, "{bytes:?}");
        }
        assert!(!is_growing(&[1, 2, 3], Category::OptimizerState));
    }

    #[test]
    fn the_rate_leaves_the_first_step_out() {
        assert_eq!(per_step(&[100, 200, 300]), 100);
        assert_eq!(per_step(&[0, 500, 600, 700]), 100);
    }
}
