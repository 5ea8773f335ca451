//! Memory that grows from step to step, without an end in sight.
//!
//! The same point of every step is compared: where its optimizer step ends. What a loop merely replaces (its
//! loss, its batch) is made in one step and gone by the end of the next. So what counts is how many things of a place
//! are older than one step: if they become more and more up to the last step ([`lasting_rise`]), the place grows.
//! Things are counted, not bytes, since batches differ in size: a long one is no growth, and a short one after it does
//! not hide any. One tensor that is made longer in each step is found by its bytes (`longer_tensors`). Optimizer state, cached tables and gradients come once.

use std::collections::{BTreeMap, BTreeSet};

use ghostgpu_recording::{Allocation, Category, NameId, StackId};

use crate::card_ledger::CardLedger;
use crate::lasting_rise::lasting_rise;
use crate::moment::Moment;
use crate::places::{Place, Places};

/// Optimizers may take their state in turns (two of them, of a GAN): more steps are needed.
const FEWEST_STEPS_OF_OPTIMIZERS: usize = 6;

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
    /// It keeps something once in so many steps.
    pub period: usize,
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
    /// The name of most of them, where something is kept once in `period` steps. A variable that each step replaces
    /// names a step here and there; what keeps all of them names those of one step and of the next.
    fn name(&self, period: usize) -> NameId {
        let keeps = |steps: &BTreeSet<usize>| {
            let mut pairs = steps.iter().zip(steps.iter().skip(1));
            pairs.any(|(one, next)| next - one <= period)
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

    /// What grows from step to step. Three complete steps are needed to say so, and more where the first differ.
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
        let Some(&last) = ends.last() else {
            return growth;
        };
        let places = Places::of(self.recording, self.card);
        let candidates = self.accumulating(&places, ends, last);
        let mut series = self.series(&places, ends, &candidates);
        for (key, survivors) in candidates {
            let Some(series) = series.remove(&key) else {
                continue;
            };
            let (place, category) = key;
            let fewest = match category {
                Category::OptimizerState => FEWEST_STEPS_OF_OPTIMIZERS,
                _ => 0,
            };
            let rise = lasting_rise(&series.old_count).filter(|_| ends.len() >= fewest);
            let Some(rise) = rise else { continue };
            let risen = series.old_bytes[rise.to].saturating_sub(series.old_bytes[rise.from]);
            growth.sources.push(GrowthSource {
                label: places.label(&place),
                place,
                category,
                stack: survivors.stack,
                kept_in: self.keeper(category, survivors.name(rise.period)),
                bytes_at_ends: series.bytes,
                bytes_per_step: risen / (rise.to - rise.from).max(1) as u64,
                period: rise.period,
                count: survivors.count,
            });
        }
        let longer = self.longer_tensors(&places, ends);
        let is_counted = |place: &Place| growth.sources.iter().any(|one| one.place == *place);
        let longer: Vec<GrowthSource> = longer
            .into_iter()
            .filter(|source| !is_counted(&source.place))
            .collect();
        growth.sources.extend(longer);
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
    fn series<T>(
        &self,
        places: &Places,
        ends: &[Moment],
        candidates: &BTreeMap<(Place, Category), T>,
    ) -> BTreeMap<(Place, Category), Series> {
        // Changes at each end first, then sums: an allocation may live through very many.
        let mut changes: BTreeMap<_, [Changes; 3]> = candidates
            .keys()
            .map(|key| (key.clone(), [(); 3].map(|()| Changes::over(ends.len()))))
            .collect();
        for one in &self.card.allocations {
            let (first, after) = ends_with(one, ends);
            // Most of what a step makes is gone before its end: no need to look where it was made.
            if first >= after {
                continue;
            }
            if let Some([bytes, old_bytes, old_count]) =
                changes.get_mut(&(places.place(one), one.category))
            {
                bytes.add(one.block_bytes, first, after);
                old_bytes.add(one.block_bytes, first + 1, after);
                old_count.add(1, first + 1, after);
            }
        }
        let changes = changes.into_iter();
        changes
            .map(|(key, [bytes, old_bytes, old_count])| {
                let series = Series {
                    bytes: bytes.sums(),
                    old_bytes: old_bytes.sums(),
                    old_count: old_count.sums(),
                };
                (key, series)
            })
            .collect()
    }

    /// How many steps more fit on the card beside what the rehearsed ones need: what the answer says to be left, or
    /// else what the most that was reserved leaves.
    fn steps_until_full(&self, bytes_per_step: u64) -> Option<u64> {
        let about = &self.recording.about;
        if let Some(left) = about
            .answer
            .as_ref()
            .and_then(|answer| answer.headroom_bytes)
        {
            return left.checked_div(bytes_per_step);
        }
        let total = about.gpu_total_bytes;
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

/// What a place holds at the end of each step.
struct Series {
    bytes: Vec<u64>,
    /// Of what was made in an earlier step.
    old_bytes: Vec<u64>,
    old_count: Vec<u64>,
}

/// The first end at which an allocation is live, and the first at which it is not any more.
pub(crate) fn ends_with(one: &Allocation, ends: &[Moment]) -> (usize, usize) {
    let passed = |event: u32| ends.partition_point(|end| end.0 <= event as usize);
    let first = one.allocated_at.map_or(0, passed);
    (first, one.freed_at.map_or(ends.len(), passed))
}

/// By how much a sum changes at each of a number of points.
pub(crate) struct Changes(Vec<i128>);

impl Changes {
    pub(crate) fn over(points: usize) -> Self {
        Self(vec![0; points + 1])
    }

    /// Counts from one point on, up to another.
    pub(crate) fn add(&mut self, amount: u64, from: usize, to: usize) {
        if from < to {
            self.0[from] += i128::from(amount);
            self.0[to] -= i128::from(amount);
        }
    }

    pub(crate) fn sums(&self) -> Vec<u64> {
        let sums = self.0.iter().scan(0, |sum: &mut i128, change| {
            *sum += change;
            Some((*sum).clamp(0, u64::MAX.into()) as u64)
        });
        sums.take(self.0.len() - 1).collect()
    }
}
