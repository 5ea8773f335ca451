//! Memory that grows from step to step without settling.
//!
//! The same point of every step is compared: the end of its optimizer step. What a loop merely replaces (its loss, its
//! batch) is made in one step and freed by the end of the next. So a place grows if it holds more and more allocations
//! that are older than one step, up to the last step ([`lasting_rise`]). Allocations are counted instead of bytes,
//! because batches differ in size: a large batch is no growth, and a small one after it must not hide growth. One tensor
//! that gets longer in each step is found by its bytes (`longer_tensors`). Optimizer state, cached tables and gradients
//! are allocated once, so they do not count as growth.

use std::collections::{BTreeMap, BTreeSet};

use ghostgpu_recording::{Allocation, Category, NameId, StackId};

use crate::card_ledger::CardLedger;
use crate::lasting_rise::lasting_rise;
use crate::moment::Moment;
use crate::places::{Place, Places};

/// Growth of optimizer state needs more steps, because several optimizers (of a GAN, for example) may allocate their
/// state one after the other.
const FEWEST_STEPS_OF_OPTIMIZERS: usize = 6;

/// At most this many of the last steps are compared.
const MOST_STEPS: usize = 1000;

/// At most this many places are reported, those that grow most.
const MOST_PLACES: usize = 64;

/// Memory that grows from step to step, on one card.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Growth {
    /// How many steps were compared.
    pub steps: usize,
    /// What grows, the fastest first.
    pub sources: Vec<GrowthSource>,
    /// The sum of all sources, on average.
    pub bytes_per_step: u64,
    /// After how many more steps the card is full.
    pub steps_until_full: Option<u64>,
}

/// A line that allocates memory that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrowthSource {
    pub place: Place,
    /// The place in words.
    pub label: String,
    pub category: Category,
    /// The stack of the largest allocation that is kept.
    pub stack: StackId,
    /// The variable that keeps it, in words; empty if unknown.
    pub kept_in: String,
    /// Bytes of the blocks that are live at the end of each compared step.
    pub bytes_at_ends: Vec<u64>,
    /// On average, without the first step if there are enough others.
    pub bytes_per_step: u64,
    /// It keeps something once in this many steps.
    pub period: usize,
    /// The number of its allocations at the end of the last step.
    pub count: u64,
    /// It is one tensor, which every step copies into a longer one. While it does, both exist.
    pub is_copied: bool,
}

impl GrowthSource {
    /// By how much it raises the peak with every step, on average.
    pub fn peak_bytes_per_step(&self) -> u64 {
        let copies = if self.is_copied { 2 } else { 1 };
        self.bytes_per_step.saturating_mul(copies)
    }
}

#[derive(Default)]
struct Survivors {
    /// The steps that made them, as indices of their ends.
    made_in: BTreeSet<usize>,
    block_bytes: u64,
    count: u64,
    largest_bytes: u64,
    stack: StackId,
    /// For each name, the steps whose survivors have it.
    names: BTreeMap<NameId, BTreeSet<usize>>,
}

impl Survivors {
    /// The name that most of them have, if something is kept once in `period` steps. A variable that each step replaces
    /// names the survivors of single steps; one that keeps all of them names those of consecutive steps.
    fn name(&self, period: usize) -> NameId {
        let keeps = |steps: &BTreeSet<usize>| {
            let mut pairs = steps.iter().zip(steps.iter().skip(1));
            pairs.any(|(one, next)| next - one <= period)
        };
        let keepers = self.names.iter().filter(|(_, steps)| keeps(steps));
        // Of equally frequent names, the first.
        let most = keepers.max_by_key(|(name, steps)| (steps.len(), std::cmp::Reverse(**name)));
        most.map(|(name, _)| *name).unwrap_or_default()
    }
}

impl CardLedger<'_> {
    /// The variable that keeps memory of this category: only results and what is saved for backward are named by it.
    fn keeper(&self, category: Category, name: NameId) -> String {
        let is_named_by_variable = matches!(
            category,
            Category::Kept | Category::Temporary | Category::Activation
        );
        let text = self.recording.names.texts.get(name.0 as usize);
        let text = text.filter(|_| is_named_by_variable);
        text.cloned().unwrap_or_default()
    }

    /// What grows from step to step. Needs at least three complete steps.
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
                is_copied: false,
            });
        }
        let longer = self.longer_tensors(&places, ends);
        let is_counted = |place: &Place| growth.sources.iter().any(|one| one.place == *place);
        let longer: Vec<GrowthSource> = longer
            .into_iter()
            .filter(|source| !is_counted(&source.place))
            .collect();
        growth.sources.extend(longer);
        // A stable sort keeps sources with equal growth in the order of their places.
        growth
            .sources
            .sort_by_key(|source| std::cmp::Reverse(source.bytes_per_step));
        let rates = growth.sources.iter().map(|source| source.bytes_per_step);
        growth.bytes_per_step = rates.fold(0, u64::saturating_add);
        growth.steps_until_full = self.steps_until_full(growth.bytes_per_step);
        growth
    }

    /// Places with live allocations at the end of the last step that were made in at least two earlier steps.
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

    /// What each candidate holds at the end of each step.
    fn series<T>(
        &self,
        places: &Places,
        ends: &[Moment],
        candidates: &BTreeMap<(Place, Category), T>,
    ) -> BTreeMap<(Place, Category), Series> {
        // Collect changes at each end first and sum them up later, because an allocation may live through many ends.
        let mut changes: BTreeMap<_, [Changes; 3]> = candidates
            .keys()
            .map(|key| (key.clone(), [(); 3].map(|()| Changes::over(ends.len()))))
            .collect();
        for one in &self.card.allocations {
            let (first, after) = ends_with(one, ends);
            // Most of what a step allocates is freed before its end, and its place does not matter.
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

    /// After how many more steps the card is full. The memory left is the answer's headroom if known, else the card's
    /// memory minus peak reserved memory.
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
    /// Counting only allocations from earlier steps.
    old_bytes: Vec<u64>,
    old_count: Vec<u64>,
}

/// The range of step ends at which an allocation is live: the first, and the first after it is freed.
pub(crate) fn ends_with(one: &Allocation, ends: &[Moment]) -> (usize, usize) {
    let passed = |event: u32| ends.partition_point(|end| end.0 <= event as usize);
    let first = one.allocated_at.map_or(0, passed);
    (first, one.freed_at.map_or(ends.len(), passed))
}

/// The change of a sum at each of several points.
pub(crate) struct Changes(Vec<i128>);

impl Changes {
    pub(crate) fn over(points: usize) -> Self {
        Self(vec![0; points + 1])
    }

    /// Adds an amount from one point up to, not including, another.
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
