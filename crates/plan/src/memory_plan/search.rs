//! The search: what every trick saves alone, then combinations, the fastest first.
//!
//! 1. Each trick alone, on the card. If it does not fit, once more with unlimited memory, to see what it saves.
//! 2. All tricks that save something, together. If that does not fit, no part of it does.
//! 3. Combinations of them, the fastest first. A combination is skipped if it contains one that fits, or if the sum of
//!    what its tricks save is not enough: tricks that save the same memory save less together, never more. When enough
//!    combinations have been rehearsed, those that take much longer than one that fits are skipped too.
//!
//! Amounts (blocks, chunks) are lowered to the least that fits. Estimates only decide what to rehearse; every answer
//! was rehearsed.

use ghostgpu_rehearse::{Peaks, Stop};
use ghostgpu_tricks::{Numerics, Request};

use super::Question;
use super::allowed::{Allowance, Allowed};
use super::bench::{Bench, CombinationOutcome, FOR_EVALUATION, Where};
use super::coarse_time::coarse_time;
use super::combination::Combination;
use super::composition::Composition;
use super::families::{
    FREE, Family, LadderKind, accumulation, checkpointing, families, shorter_sequences, singles,
};
use super::least::Least;
use super::number_changes::number_changes;
use super::savings::Savings;

/// How many rehearsals are spent on combinations that build on one change of the numbers.
const REHEARSALS_PER_CHANGE: usize = 12;

/// After this many combinations, those that take [`MUCH_LONGER`] than one that fits are skipped.
const ENOUGH: usize = 24;
const MUCH_LONGER: f64 = 1.25;

/// How many rehearsals are made at the same time if not all of them may be needed.
const AT_ONCE: usize = 2;

/// The state of a search.
pub struct Search<'a> {
    pub bench: Bench<'a>,
    question: &'a Question<'a>,
    composition: &'a Composition,
    needed: Peaks,
    savings: Savings<'a>,
    /// Combinations of all compatible tricks that save something, and still do not fit.
    too_large: Vec<Combination>,
    pub left_out: LeftOut,
}

/// How many families of combinations were not rehearsed, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// They contain one that fits.
    pub contain_one_that_fits: usize,
    /// Their tricks cannot save enough.
    pub too_large: usize,
    /// They take much longer than one that fits, and enough others have been rehearsed.
    pub slower: usize,
}

impl<'a> Search<'a> {
    pub fn new(
        bench: Bench<'a>,
        question: &'a Question<'a>,
        composition: &'a Composition,
        needed: Peaks,
    ) -> Self {
        Self {
            bench,
            question,
            composition,
            needed,
            savings: Savings::new(composition, needed),
            too_large: Vec::new(),
            left_out: LeftOut::default(),
        }
    }

    /// The memory that a plan must fit into.
    fn target_bytes(&self) -> u64 {
        let card = &self.question.card;
        card.capacity_bytes().saturating_sub(card.margin_bytes())
    }

    /// Searches tricks that keep the numbers, up to rounding.
    pub fn without_other_numbers(&mut self) -> Result<(), Stop> {
        let mut alone = singles(self.composition);
        alone.retain(|family| {
            !family.has_any(|name| {
                !self.question.allowed.permits(name) || self.savings.can_only_be_small(name)
            })
        });
        alone.sort_by(|one, other| self.time(one).total_cmp(&self.time(other)));
        for some in alone.chunks(AT_ONCE) {
            self.alone(some)?;
        }
        self.allocator_settings()?;
        let none = Combination::none();
        self.rehearse_strongest(&none)?;
        self.families_on(&none, usize::MAX)
    }

    /// Searches what else is allowed: smaller batches with the same samples per step, then changes of the numbers in
    /// combination with everything before, then shorter sequences.
    pub fn with_other_numbers(&mut self, allowed: &Allowed) -> Result<(), Stop> {
        let none = Combination::none();
        let permits = |allowance| allowed.changes.contains(&allowance);
        let smaller = accumulation(&none, self.composition);
        if let Some(family) = smaller.filter(|_| permits(Allowance::Batch)) {
            self.least(&family)?;
        }
        let has_bfloat16 = self.question.card.sheet.capability.major >= 8;
        for prefix in number_changes(allowed, has_bfloat16, self.composition.blocks) {
            self.on_prefix(&prefix)?;
        }
        let shorter = shorter_sequences(&none, self.composition);
        if let Some(family) = shorter.filter(|_| permits(Allowance::Sequence)) {
            self.least(&family)?;
        }
        Ok(())
    }

    fn on_prefix(&mut self, prefix: &Combination) -> Result<(), Stop> {
        if self.contains_one_that_fits(prefix) {
            self.left_out.contain_one_that_fits += 1;
            return Ok(());
        }
        let Some(index) = self.bench.on_card(prefix)? else {
            return Ok(());
        };
        match &self.bench.rehearsed[index].outcome {
            CombinationOutcome::Fits { .. } => return Ok(()),
            CombinationOutcome::DoesNotFit { .. } => {}
            CombinationOutcome::NotKnown(_) | CombinationOutcome::Fails(_) => return Ok(()),
        }
        if let Some(peaks) = self.bench.with_unlimited_memory(index)? {
            self.savings.note(prefix.clone(), peaks.device_bytes);
        }
        // If checkpointing saved nothing of the plain job, it may save something here: with smaller gradients and state
        // the peak moves from the optimizer's step, which has no activations, to the backward pass.
        if !self.savings.has("checkpointing") && self.question.allowed.permits("checkpointing") {
            self.least(&checkpointing(prefix, self.composition))?;
        }
        self.rehearse_strongest(prefix)?;
        self.families_on(prefix, REHEARSALS_PER_CHANGE)
    }

    /// Rehearses tricks alone: does each fit, and in which least amount? If not, what does it save?
    fn alone(&mut self, families: &[Family]) -> Result<(), Stop> {
        let strongest: Vec<(&Family, Combination)> = families
            .iter()
            .filter_map(|family| Some((family, strongest_of(family)?)))
            .collect();
        let capacity_bytes = self.question.card.capacity_bytes();
        let place = |it: &Combination| match self.savings.cannot_be_enough(it, capacity_bytes) {
            true => Where::Unlimited,
            false => Where::OnCard,
        };
        let wanted: Vec<(Combination, Where)> = strongest
            .iter()
            .map(|(_, it)| (it.clone(), place(it)))
            .collect();
        self.bench.expect(&wanted)?;
        let mut rehearsed = Vec::new();
        for (family, strongest) in strongest {
            let index = match self.savings.cannot_be_enough(&strongest, capacity_bytes) {
                true => self.bench.known_not_to_fit(&strongest)?,
                false => self.bench.on_card(&strongest)?,
            };
            rehearsed.extend(index.map(|index| (family, strongest, index)));
        }
        let lacking = rehearsed.iter().map(|(_, _, index)| *index);
        let lacking = lacking.filter(|index| self.bench.lacks_figures(*index));
        let lacking: Vec<(Combination, Where)> = lacking
            .map(|index| self.bench.rehearsed[index].combination.clone())
            .map(|combination| (combination, Where::Unlimited))
            .collect();
        self.bench.expect(&lacking)?;
        for (family, strongest, index) in rehearsed {
            self.saving_alone(family, strongest, index)?;
        }
        Ok(())
    }

    fn saving_alone(
        &mut self,
        family: &Family,
        strongest: Combination,
        index: usize,
    ) -> Result<(), Stop> {
        let bytes = match &self.bench.rehearsed[index].outcome {
            CombinationOutcome::Fits { peaks, .. } => Some(peaks.device_bytes),
            CombinationOutcome::DoesNotFit { .. } => {
                let peaks = self.bench.with_unlimited_memory(index)?;
                peaks.map(|peaks| peaks.device_bytes)
            }
            CombinationOutcome::NotKnown(_) | CombinationOutcome::Fails(_) => None,
        };
        if let Some(bytes) = bytes {
            self.savings.note(strongest, bytes);
        }
        if family.ladder.is_some() && bytes.is_some() {
            self.least(family)?;
        }
        Ok(())
    }

    /// Rehearses other allocator settings, which take a run from the script's first line, only if unused cached memory would
    /// make the difference.
    fn allocator_settings(&mut self) -> Result<(), Stop> {
        let target = self.target_bytes();
        let used = self
            .needed
            .device_bytes
            .saturating_sub(self.composition.unused_bytes());
        let lost = self
            .needed
            .reserved_bytes
            .saturating_sub(self.needed.allocated_bytes);
        let could_fit = used.min(self.needed.device_bytes.saturating_sub(lost)) <= target;
        let combination = Combination::of(Request::named("allocator"));
        if let Some(combination) = combination.filter(|_| could_fit)
            && self.question.allowed.permits("allocator")
        {
            self.bench.on_card(&combination)?;
        }
        Ok(())
    }

    /// Rehearses all tricks that save something, together. If they do not fit, no part of them does.
    fn rehearse_strongest(&mut self, prefix: &Combination) -> Result<(), Stop> {
        let strongest = self.savings.strongest(prefix);
        if strongest == *prefix || self.fits_within(prefix) {
            return Ok(());
        }
        let Some(index) = self.bench.on_card(&strongest)? else {
            return Ok(());
        };
        if matches!(
            self.bench.rehearsed[index].outcome,
            CombinationOutcome::DoesNotFit { .. }
        ) {
            self.bench.with_unlimited_memory(index)?;
            self.too_large.push(strongest);
        }
        Ok(())
    }

    fn families_on(&mut self, prefix: &Combination, most: usize) -> Result<(), Stop> {
        let free: Vec<&str> = FREE
            .into_iter()
            .filter(|name| self.savings.has(name) && self.question.allowed.permits(name))
            .collect();
        let mut all = families(prefix, &free, self.composition);
        all.retain(|family| {
            !family.has_any(|name| {
                let is_own = prefix.has(name);
                !is_own && (!self.question.allowed.permits(name) || !self.savings.has(name))
            })
        });
        all.sort_by(|one, other| {
            let size = |family: &Family| family.fixed.requests().len();
            let order = self.time(one).total_cmp(&self.time(other));
            order.then(size(one).cmp(&size(other)))
        });
        let target_bytes = self.target_bytes();
        let until = self.bench.rehearsals.saturating_add(most);
        for family in all {
            if self.bench.is_spent() || self.bench.rehearsals >= until {
                break;
            }
            if self.contains_one_that_fits(&family.fixed) {
                self.left_out.contain_one_that_fits += 1;
                continue;
            }
            if self.bench.rehearsed.len() >= ENOUGH && self.is_much_slower(&family, prefix) {
                self.left_out.slower += 1;
                continue;
            }
            let strongest = family.at(family.height());
            if strongest.is_some_and(|all| {
                self.is_too_large(&all) || !self.savings.may_fit(&all, prefix, target_bytes)
            }) {
                self.left_out.too_large += 1;
                continue;
            }
            self.least(&family)?;
        }
        Ok(())
    }

    /// Removes tricks that the best combination does not need.
    pub fn leave_out_what_is_not_needed(&mut self) -> Result<(), Stop> {
        let blocks = self.composition.blocks;
        let mut removable: Vec<&str> = FREE.to_vec();
        removable.extend(["loss-head", "optimizer-in-backward"]);
        // Tricks added for evaluation may have been needed only by other combinations.
        for (name, _) in FOR_EVALUATION.iter().rev() {
            if !removable.contains(name) {
                removable.push(name);
            }
        }
        let mut before = None;
        loop {
            super::ranking::rank(&mut self.bench.rehearsed, blocks);
            let best = self
                .bench
                .rehearsed
                .first()
                .filter(|rehearsed| rehearsed.fits_with_room());
            let best = best.map(|rehearsed| rehearsed.combination.clone());
            // A combination without the trick may still rank behind; if the best has not changed, this is done.
            let Some(best) = best.filter(|best| before.as_ref() != Some(best)) else {
                return Ok(());
            };
            let present: Vec<&str> = removable
                .iter()
                .copied()
                .filter(|it| best.has(it))
                .collect();
            let without = present
                .iter()
                .map(|name| (best.without(name), Where::OnCard));
            self.bench
                .expect(&without.take(AT_ONCE).collect::<Vec<_>>())?;
            for name in present {
                self.bench.leave_out_in_evaluation(name);
                let index = self.bench.on_card(&best.without(name))?;
                let rehearsed = index.map(|index| &self.bench.rehearsed[index]);
                if rehearsed.is_some_and(|it| it.fits_with_room() && it.combination != best) {
                    break;
                }
            }
            before = Some(best);
        }
    }

    /// Rehearses the best combination thoroughly and, if it does not fit then, the next best, until one does.
    pub fn rehearse_best_thoroughly(&mut self) -> Result<(), Stop> {
        loop {
            super::ranking::rank(&mut self.bench.rehearsed, self.composition.blocks);
            let best = self.bench.rehearsed.first();
            if best.is_none_or(|best| best.is_thorough || !best.fits()) {
                return Ok(());
            }
            self.bench.rehearse_thoroughly(0)?;
        }
    }

    /// Finds the least amount of a family that fits.
    fn least(&mut self, family: &Family) -> Result<(), Stop> {
        let mut least = Least::up_to(family.height());
        for (rung, is_enough) in self.known_rungs(family) {
            least.note(rung, is_enough);
        }
        let starts_at_top = family
            .ladder
            .as_ref()
            .is_some_and(|ladder| ladder.kind == LadderKind::Blocks);
        let mut guess = match (least.found(), starts_at_top) {
            (None, true) => Some(family.height()),
            _ => self.first_guess(family),
        };
        let mut guesses = 0;
        while let Some(rung) = least.next(guess) {
            let Some(combination) = family.at(rung) else {
                break;
            };
            // If this rung is enough, the one below is asked for next, so both are made at the same time.
            if rung < family.height() && guesses == usize::from(starts_at_top) {
                let below = rung.checked_sub(1).and_then(|rung| family.at(rung));
                let both = below.into_iter().chain([combination.clone()]);
                let both: Vec<_> = both.map(|it| (it, Where::OnCard)).collect();
                self.bench.expect(&both)?;
            }
            let Some(index) = self.bench.on_card(&combination)? else {
                break;
            };
            let rehearsed = &self.bench.rehearsed[index];
            let is_enough = rehearsed.fits_with_room();
            if matches!(
                rehearsed.outcome,
                CombinationOutcome::Fails(_) | CombinationOutcome::NotKnown(_)
            ) {
                break;
            }
            least.note(rung, is_enough);
            if !is_enough && rung == family.height() {
                break;
            }
            guesses += 1;
            guess = match guesses {
                1 if rung == family.height() => self.first_guess(family),
                1 | 2 if is_enough => Some(rung.saturating_sub(1)),
                1 | 2 if least.found().is_some() => Some(rung + 1),
                _ => None,
            };
        }
        Ok(())
    }

    /// What is known about a family's rungs: from itself, and from combinations with fewer tricks that fit, because what
    /// is enough there is enough here too.
    fn known_rungs(&self, family: &Family) -> Vec<(u64, bool)> {
        let rehearsed = self.bench.rehearsed.iter();
        let known = rehearsed.filter_map(|rehearsed| {
            let rung = family.rung_of(&rehearsed.combination)?;
            let names = family.at(rung)?;
            let is_enough = rehearsed.fits_with_room();
            let is_same = rehearsed.combination.requests().len() == names.requests().len();
            let is_less = rehearsed.combination.is_within(&names);
            (is_less && (is_enough || is_same)).then_some((rung, is_enough))
        });
        known.collect()
    }

    /// The lowest rung that is enough according to the estimate.
    fn first_guess(&self, family: &Family) -> Option<u64> {
        (1..=family.height()).find(|rung| {
            family.at(*rung).is_some_and(|combination| {
                self.savings.estimate(&combination) <= self.target_bytes()
            })
        })
    }

    fn is_too_large(&self, combination: &Combination) -> bool {
        self.too_large.iter().any(|all| combination.is_within(all))
    }

    /// Whether a combination contains one that fits, with the same amounts.
    fn contains_one_that_fits(&self, combination: &Combination) -> bool {
        let mut fitting = self
            .bench
            .rehearsed
            .iter()
            .filter(|rehearsed| rehearsed.fits_with_room());
        fitting.any(|rehearsed| {
            let same = |request: &Request| combination.get(&request.name) == Some(request);
            rehearsed.combination.requests().iter().all(same)
        })
    }

    /// Whether a combination that builds on `prefix` fits.
    fn fits_within(&self, prefix: &Combination) -> bool {
        let mut fitting = self
            .bench
            .rehearsed
            .iter()
            .filter(|rehearsed| rehearsed.fits_with_room());
        fitting.any(|rehearsed| prefix.is_within(&rehearsed.combination))
    }

    /// Whether a combination that fits, and changes the numbers no more than `prefix`, takes much less time.
    fn is_much_slower(&self, family: &Family, prefix: &Combination) -> bool {
        let mut fitting = self
            .bench
            .rehearsed
            .iter()
            .filter(|rehearsed| rehearsed.fits_with_room());
        let least = self.time(family) / MUCH_LONGER;
        fitting.any(|rehearsed| {
            let is_alike =
                rehearsed.combination.numerics() <= prefix.numerics().max(Numerics::Rounding);
            is_alike && coarse_time(&rehearsed.combination, self.composition.blocks) < least
        })
    }

    /// The coarse time of a step with the lowest rung of a family.
    fn time(&self, family: &Family) -> f64 {
        let least = family.at(1).unwrap_or_default();
        coarse_time(&least, self.composition.blocks)
    }
}

/// The amount in which a trick is rehearsed first.
fn strongest_of(family: &Family) -> Option<Combination> {
    match family.ladder.as_ref().map(|ladder| ladder.kind) {
        // What two chunks save shows what more of them would save.
        Some(LadderKind::Chunks) => family.at(1),
        _ => family.at(family.height()),
    }
}
